# Two commands do everything on a machine that has Python: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt

.PHONY: demo test browser faults clean

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

# The stamps stand for "installed from this pyproject.toml": a second run installs nothing.
.venv/demo-installed: .venv/created pyproject.toml constraints/cpu.txt
	$(PIP_INSTALL) -e '.[cli,train,report]'
	@touch $@

.venv/test-installed: .venv/created pyproject.toml constraints/cpu.txt
	$(PIP_INSTALL) -e '.[cli,train,report,review,scale,offline,dev]'
	@touch $@

.venv/created:
	$(PYTHON) -m venv .venv
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
