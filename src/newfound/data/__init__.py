"""Reading the user's data: folders of pictures, tables, files of features."""
