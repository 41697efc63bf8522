return n / 2
