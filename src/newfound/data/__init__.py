"""What a person has: folders of pictures, tables, files of features."""
