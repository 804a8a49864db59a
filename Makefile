# Two commands do everything on a machine that has Python: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt

.PHONY: demo test browser faults docs licences test-lowest wheel wheel-test audit sbom clean

demo: .venv/demo-installed
	$(BIN)/newfound demo

test: .venv/test-installed browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2

# The review page is tested in a real browser: Debian's Chromium, installed here if root or sudo can.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  root=""; [ "$$(id -u)" = 0 ] || root="sudo -n"; \
	  $$root apt-get update -qq && $$root apt-get install -y -qq --no-install-recommends chromium; } || { \
	  echo "The tests need Chromium. Install it (Debian: apt-get install chromium) and run make test again." >&2; exit 1; }

# The tests of damaged files and bad input, 30 times as many as in `make test`.
faults: .venv/test-installed
	NEWFOUND_FAULTS=30 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/faults -n 2 --timeout 3600

# The documentation site, in docs/_build/html. A warning is an error.
docs: .venv/docs-installed
	$(BIN)/sphinx-build -W --keep-going -E -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# The page of licences, from the packages that are installed.
licences: .venv/docs-installed
	$(BIN)/python studies/licences.py > docs/licences.md

# The tests with the oldest packages that pyproject.toml allows (torch stays pinned): Python 3.11 or 3.12.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) constraints/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet -c constraints/cpu.txt -c .venv-lowest/lowest.txt -e '.[cli,train,report,scale,review,offline,dev]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/pytest -n 2 -o filterwarnings=default  # old packages warn about new ones

# The wheel, and a first walk with it in an environment that has nothing else.
wheel:
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .

wheel-test: wheel
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet -c constraints/cpu.txt "$$(ls -t dist/newfound-*.whl | head -1)[cli,train,report,review]"
	sh studies/wheel_test.sh .venv-wheel/bin

# What is known about weaknesses of the packages that the wheel brings, and a list of them all.
audit: .venv-tools/installed
	.venv-tools/bin/pip-audit --path .venv-wheel/lib/python*/site-packages

sbom: .venv-tools/installed
	.venv-tools/bin/cyclonedx-py environment .venv-wheel/bin/python --output-format JSON --output-file dist/newfound.cdx.json
	@echo "dist/newfound.cdx.json"

.venv-tools/installed:
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet pip-audit cyclonedx-bom
	@touch $@

# The stamps stand for "installed from this pyproject.toml": a second run installs nothing.
.venv/demo-installed: .venv/created pyproject.toml constraints/cpu.txt
	$(PIP_INSTALL) -e '.[cli,train,report]'
	@touch $@

.venv/test-installed: .venv/created pyproject.toml constraints/cpu.txt
	$(PIP_INSTALL) -e '.[cli,train,report,review,scale,offline,dev]'
	@touch $@

.venv/docs-installed: .venv/created pyproject.toml constraints/cpu.txt
	$(PIP_INSTALL) -e '.[cli,train,report,review,docs]'
	@touch $@

.venv/created:
	$(PYTHON) -m venv .venv
	@touch $@

clean:
	rm -rf .venv .venv-lowest .venv-wheel .venv-tools dist docs/_build docs/api .nox .mypy_cache .ruff_cache .pytest_cache .hypothesis
