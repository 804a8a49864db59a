"""How many novel categories there are: `count` estimates the number, `rehearsal` checks it."""
