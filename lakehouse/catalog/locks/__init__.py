"""Operations from begin to end, and the locks that they hold or wait for."""
