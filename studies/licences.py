"""Write the page of licences: the packages that newfound and its extras need, as they say it.

python studies/licences.py > docs/licences.md      # or: make licences

Only packages that are installed can be asked, so run it where all extras are.
"""

import contextlib
import re
from importlib import metadata

EXTRAS = ("train", "cli", "report", "review", "offline")
HEAD = """# Licences of the software

newfound is under the Apache licence 2.0. It does not contain the packages below; pip installs
them beside it. The table has the packages that `newfound[train,cli,report,review,offline]` needs,
directly or through others, and the licence that each of them declares. It is made by
`make licences`. `make sbom` writes a full list with versions (CycloneDX). The licences of data and
weights are in [limitations](limitations.md#licences-of-the-data-sets).

| package | licence | needed by |
|---|---|---|"""


def requirements_of(name, extras):
    """Names of the packages that a package needs on this system."""
    for requirement in metadata.distribution(name).requires or ():
        marker = requirement.partition(";")[2]
        extra = re.search(r"""extra\s*==\s*['"](.+?)['"]""", marker)
        if (extra is None or extra[1] in extras) and not re.search("win32|Windows", marker):
            yield re.match(r"[\w.-]+", requirement)[0]


def needed():
    """Package → who needs it, the packages that newfound itself names first."""
    found, queue = {}, [("newfound", EXTRAS)]
    while queue:
        name, extras = queue.pop(0)
        for other in requirements_of(name, extras):
            key = re.sub(r"[-_.]+", "-", other).lower()
            with contextlib.suppress(metadata.PackageNotFoundError):
                if key not in found and metadata.distribution(other):
                    found[key] = name
                    queue.append((key, ()))
    return found


def licence_of(package):
    """What a package says of its licence: the expression, the classifiers, or the first line."""
    told = package.metadata
    classes = [one for one in told.get_all("Classifier", []) if one.startswith("License ::")]
    named = ", ".join(one.split(" :: ")[-1] for one in classes).replace("OSI Approved", "")
    first = "".join((told.get("License") or "").strip().splitlines()[:1])[:80]
    said = told.get("License-Expression") or named or first
    return "not declared" if said in ("", "UNKNOWN") else said


def main():
    print(HEAD)
    for key, by in sorted(needed().items()):
        package = metadata.distribution(key)
        print(f"| {package.metadata['Name']} | {licence_of(package)} | {by} |")


if __name__ == "__main__":
    main()
