import pytest

from newfound.result.export import export


def test_csv_comes_back_the_same(result, tmp_path, read_csv):
    rows = read_csv(export(result, "csv", tmp_path / "table.csv"))
    assert list(rows[0]) == list(result.table)
    for row, expected in zip(rows, result.table.to_dict("records"), strict=True):
        for name, value in expected.items():
            if isinstance(value, float):
                assert float(row[name]) == pytest.approx(value, rel=1e-5)
            else:
                assert row[name] == (value or "")


def test_formulas_are_texts_in_csv(tmp_path, read_csv, hostile):
    rows = read_csv(export(hostile, "csv", tmp_path / "t.csv"))
    folders = read_csv(export(hostile, "folders", tmp_path / "f") / "categories.csv")
    for table in (rows, folders):
        cells = [row["category"] for row in table]
        assert "'=1+1" in cells
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
