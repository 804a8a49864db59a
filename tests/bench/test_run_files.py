"""Names of files: two runs share one only if they share its content."""

import dataclasses
from dataclasses import replace

import pytest

from newfound.bench.case import Case
from newfound.bench.methods import NAMES
from newfound.bench.protocol import bench_settings, make_case
from newfound.bench.run_files import outcome_file, run_folder


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("gcd", "pim", "cms", "dccl")]
)
def test_other_methods_are_trained_for_each_k(tmp_path, name):
    settings = bench_settings("digits")
    cases = [make_case(name, "digits", settings, k=k) for k in ("known", "brent", "count")]
    folders = [run_folder(case, tmp_path, k) for case, k in zip(cases, (7, 9, 7), strict=True)]
    assert folders[0] == folders[2] != folders[1]  # what matters is the number


def test_every_field_of_a_case_has_an_outcome_of_its_own(tmp_path):
    case = Case("gcd", "digits")
    others = [
        replace(case, **{item.name: value})
        for item in dataclasses.fields(Case)
        for value in [
            {"str": "other", "int": 7, "bool": not getattr(case, item.name)}.get(
                str(item.type), {"a": 1} if item.name == "changes" else "7"
            )
        ]
    ]
    assert len({outcome_file(one, tmp_path) for one in [case, *others]}) == len(others) + 1
