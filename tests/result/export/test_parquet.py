import pandas as pd

from newfound.result.export import export


def test_parquet_comes_back_the_same(result, tmp_path):
    out = export(result, "parquet", tmp_path / "new" / "table.parquet")
    assert out == tmp_path / "new" / "table.parquet"
    again = pd.read_parquet(out)
    assert list(again) == list(result.table)
    for name in again:
        values = again[name].astype(object).where(again[name].notna(), None)
        assert values.tolist() == result.table[name].tolist()
