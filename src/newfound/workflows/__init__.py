"""The jobs of the commands: discover, predict, update, train, embed."""
