"""The paper's tables, with our rows beside them."""
