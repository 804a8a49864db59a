import contextlib
import io
import os

import pytest

from newfound.data.pictures import PictureError
from newfound.result.export import export

Image = pytest.importorskip("PIL.Image")
CATEGORIES = ["cat", "dog", "new-001", "new-002"]


def read_coco(path):
    coco = pytest.importorskip("pycocotools.coco").COCO
    with contextlib.redirect_stdout(io.StringIO()):
        return coco(str(path))


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # pycocotools' own masks
def test_coco_reads_it(result, tmp_path, root):
    coco = read_coco(export(result, "coco", tmp_path / "coco.json"))
    assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == CATEGORIES
    assert {category["supercategory"] for category in coco.cats.values()} == {"known", "novel"}
    assert min(coco.getCatIds()) == min(coco.getImgIds()) == min(coco.getAnnIds()) == 1
    for row in result.table.itertuples():
        (image,) = [image for image in coco.imgs.values() if image["file_name"] == row.id]
        with Image.open(root / image["file_name"]) as picture:
            assert (image["width"], image["height"]) == picture.size
        (annotation,) = coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]]))
        assert coco.cats[annotation["category_id"]]["name"] == row.category
        assert annotation["bbox"] == [0, 0, image["width"], image["height"]]
        assert annotation["attributes"]["score"] == annotation["score"] == row.confidence
        mask = coco.annToMask(annotation)
        assert mask.shape == (image["height"], image["width"])
        assert mask.all()
    assert len(coco.getImgIds(catIds=[coco.getCatIds(catNms=["cat"])[0]])) == 3


def test_coco_reads_hostile_names(tmp_path, hostile):
    names = hostile.categories["category"].tolist()
    coco = read_coco(export(hostile, "coco", tmp_path / "coco.json"))
    assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == names


def test_a_damaged_picture_is_named(result, tmp_path, root):
    (root / result.collection.ids[1]).write_text("no picture")
    with pytest.raises(PictureError, match=r"a/2.png: not a picture in a format"):
        export(result, "coco", tmp_path / "coco.json")
    assert os.listdir(tmp_path) == ["my pictures"]
