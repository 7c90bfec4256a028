"""Operations from begin to end, and the chunks that they hold or wait for."""
