"""Queries of the kinds that decision support asks, over `tests.contract.trade`, in the SQL of both engines."""

from __future__ import annotations

QUERIES: dict[str, str] = {
    "sums by two flags": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS pieces, sum(l_extendedprice * (1 - l_discount)) AS net,
            avg(l_quantity) AS mean, count(*) AS n, count(l_discount) AS discounted
        FROM lineitem WHERE l_shipdate <= DATE '1998-08-15' - INTERVAL 60 DAY
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "the cheapest offer by a correlated minimum": """
        SELECT s_name, n_name, p_partkey, ps_supplycost
        FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
            JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE p_type LIKE '%STEEL' AND r_name = 'EUROPE' AND ps_supplycost = (
            SELECT min(o.ps_supplycost) FROM partsupp o, supplier s, nation n, region r
            WHERE o.ps_partkey = p_partkey AND s.s_suppkey = o.ps_suppkey AND s.s_nationkey = n.n_nationkey
                AND n.n_regionkey = r.r_regionkey AND r.r_name = 'EUROPE')
        ORDER BY ps_supplycost DESC, p_partkey, s_name LIMIT 50""",
    "the dearest open orders of a segment": """
        SELECT o_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'MACHINERY' AND c_custkey = o_custkey AND o_orderkey = l_orderkey
            AND o_orderdate < DATE '1995-06-01' AND l_shipdate > DATE '1995-06-01'
        GROUP BY o_orderkey, o_orderdate ORDER BY revenue DESC NULLS LAST, o_orderkey LIMIT 10""",
    "orders with a late line": """
        SELECT o_orderpriority, count(*) AS n FROM orders
        WHERE o_orderdate >= DATE '1994-04-01' AND o_orderdate < DATE '1994-04-01' + INTERVAL 5 MONTH
            AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "six tables where both ends are of one nation": """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
            AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
        GROUP BY n_name ORDER BY revenue DESC NULLS LAST, n_name""",
    "one sum under narrow conditions": """
        SELECT sum(l_extendedprice * l_discount) AS saved FROM lineitem
        WHERE l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1995-01-01' + INTERVAL 1 YEAR
            AND l_discount BETWEEN 0.03 AND 0.07 AND l_quantity < 30""",
    "trade between two nations by year": """
        SELECT seller, buyer, shipped, sum(volume) AS revenue
        FROM (SELECT a.n_name AS seller, b.n_name AS buyer, year(l_shipdate) AS shipped,
                l_extendedprice * (1 - l_discount) AS volume
            FROM supplier JOIN lineitem ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
                JOIN customer ON c_custkey = o_custkey JOIN nation a ON s_nationkey = a.n_nationkey
                JOIN nation b ON c_nationkey = b.n_nationkey
            WHERE a.n_name IN ('LAND 3', 'LAND 4') OR b.n_name = 'LAND 5') traded
        GROUP BY seller, buyer, shipped ORDER BY seller, buyer, shipped""",
    "a share by a conditional sum": """
        SELECT extract(YEAR FROM o_orderdate) AS y,
            sum(CASE WHEN n_regionkey = 2 THEN CAST(l_extendedprice AS DOUBLE) ELSE 0 END)
                / sum(CAST(l_extendedprice AS DOUBLE)) AS part_of_all
        FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN supplier ON l_suppkey = s_suppkey
            JOIN nation ON s_nationkey = n_nationkey
        GROUP BY extract(YEAR FROM o_orderdate) ORDER BY y""",
    "profit over a pair of keys": """
        SELECT n_name, year(o_orderdate) AS y, sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS p
        FROM part, supplier, lineitem, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
            AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
        GROUP BY n_name, year(o_orderdate) ORDER BY n_name, y DESC""",
    "a HAVING over a share of all": """
        SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth FROM partsupp
        GROUP BY ps_partkey
        HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.004 FROM partsupp)
        ORDER BY worth DESC, ps_partkey""",
    "late lines by mode, counted twice": """
        SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
            count_if(o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    "customers by number of orders, none among them": """
        SELECT orders_of, count(*) AS customers
        FROM (SELECT c_custkey, count(o_orderkey) AS orders_of FROM customer
            LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey) counted
        GROUP BY orders_of ORDER BY customers DESC, orders_of DESC""",
    "a WITH query and its own maximum": """
        WITH revenue AS (
            SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total FROM lineitem
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL 3 MONTH
            GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, total FROM supplier, revenue
        WHERE s_suppkey = supplier_no AND total = (SELECT max(total) FROM revenue) ORDER BY s_suppkey""",
    "distinct suppliers, some left out": """
        SELECT p_brand, p_size, count(DISTINCT ps_suppkey) AS n FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#15' AND p_type NOT LIKE 'SMALL PLATED%'
            AND p_size IN (3, 9, 14, 19, 23, 36, 45, 49)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_size ORDER BY n DESC, p_brand, p_size""",
    "less than a share of a correlated mean": """
        SELECT sum(CAST(l_extendedprice AS DOUBLE)) / CAST(7 AS DOUBLE) AS yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_container = 'MED BAG'
            AND l_quantity < (SELECT avg(l_quantity) / 2 FROM lineitem WHERE l_partkey = p_partkey)""",
    "large orders by a sub-query with HAVING": """
        SELECT c_name, o_orderkey, o_orderdate, sum(l_quantity) AS pieces FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 230)
            AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, o_orderkey, o_orderdate ORDER BY o_orderkey LIMIT 100""",
    "a join under alternatives": """
        SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND l_quantity BETWEEN 1 AND 11 AND p_size < 15)
            OR (p_partkey = l_partkey AND p_container IN ('LG BOX', 'JUMBO PKG') AND l_quantity BETWEEN 10 AND 20)
            OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND l_shipmode IN ('AIR', 'REG AIR'))""",
    "nested IN with a correlated sum": """
        SELECT s_name FROM supplier WHERE s_suppkey IN (
            SELECT ps_suppkey FROM partsupp
            WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                    WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey))
        ORDER BY s_name""",
    "who alone was late": """
        SELECT s_name, count(*) AS waits FROM supplier JOIN lineitem a ON s_suppkey = a.l_suppkey
            JOIN orders ON o_orderkey = a.l_orderkey
        WHERE o_orderstatus = 'F' AND a.l_receiptdate > a.l_commitdate
            AND EXISTS (SELECT * FROM lineitem b WHERE b.l_orderkey = a.l_orderkey AND b.l_suppkey <> a.l_suppkey)
            AND NOT EXISTS (SELECT * FROM lineitem c WHERE c.l_orderkey = a.l_orderkey
                AND c.l_suppkey <> a.l_suppkey AND c.l_receiptdate > c.l_commitdate)
        GROUP BY s_name ORDER BY waits DESC, s_name LIMIT 100""",
    "customers who never ordered, by code": """
        SELECT code, count(*) AS n, sum(c_acctbal) AS owed FROM (
            SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
            WHERE substring(c_phone, 1, 2) IN ('11', '13', '17', '29')
                AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0)
                AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) idle
        GROUP BY code ORDER BY code""",
    "subtotals": """
        SELECT r_name, n_name, count(*) AS n, sum(c_acctbal) AS owed FROM customer
            JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        GROUP BY ROLLUP (r_name, n_name) ORDER BY r_name NULLS FIRST, n_name NULLS FIRST, n""",
    "sets of groups": """
        SELECT l_shipmode, l_returnflag, count(*) AS n FROM lineitem
        GROUP BY GROUPING SETS ((l_shipmode), (l_returnflag), ()) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3""",
    "a rank within a window over sums": """
        SELECT * FROM (SELECT n_name, p_brand, sum(l_quantity) AS pieces,
                rank() OVER (PARTITION BY n_name ORDER BY sum(l_quantity) DESC, p_brand) AS place
            FROM lineitem JOIN part ON l_partkey = p_partkey JOIN supplier ON l_suppkey = s_suppkey
                JOIN nation ON s_nationkey = n_nationkey
            GROUP BY n_name, p_brand) ranked
        WHERE place <= 2 ORDER BY n_name, place""",
    "a running sum and the month before": """
        WITH months AS (SELECT date_trunc('month', o_orderdate) AS m, sum(o_totalprice) AS total FROM orders GROUP BY 1)
        SELECT m, total, sum(total) OVER (ORDER BY m ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
            total - lag(total) OVER (ORDER BY m) AS grown
        FROM months ORDER BY m""",
    "two channels side by side, either missing": """
        WITH aired AS (SELECT l_suppkey AS k, sum(l_quantity) AS q FROM lineitem WHERE l_shipmode LIKE '%AIR' AND
                l_shipdate < DATE '1992-04-01' GROUP BY l_suppkey),
            shipped AS (SELECT l_suppkey AS k, sum(l_quantity) AS q FROM lineitem WHERE l_shipmode = 'SHIP' AND
                l_shipdate < DATE '1992-04-01' GROUP BY l_suppkey)
        SELECT coalesce(aired.k, shipped.k) AS supplier_no, aired.q AS by_air, shipped.q AS by_ship
        FROM aired FULL JOIN shipped ON aired.k = shipped.k ORDER BY supplier_no""",
    "what no line bought": """
        SELECT ps_partkey, ps_suppkey FROM partsupp
            LEFT JOIN lineitem ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
        WHERE l_orderkey IS NULL ORDER BY ps_partkey, ps_suppkey""",
    "all three kinds of set": """
        SELECT count(*) AS n FROM (
            (SELECT DISTINCT c_custkey AS k FROM customer JOIN orders ON c_custkey = o_custkey
                WHERE year(o_orderdate) = 1995
            INTERSECT SELECT o_custkey FROM orders WHERE year(o_orderdate) = 1996)
            EXCEPT SELECT o_custkey FROM orders
                WHERE o_orderpriority = '1-URGENT' AND year(o_orderdate) = 1997) kept""",
    "a union of channels under one grouping": """
        SELECT channel, y, count(*) AS n, sum(amount) AS total FROM (
            SELECT 'order' AS channel, year(o_orderdate) AS y, o_totalprice AS amount FROM orders
            UNION ALL SELECT 'line', year(l_shipdate), l_extendedprice FROM lineitem WHERE l_discount IS NULL) amounts
        GROUP BY ROLLUP (channel, y) ORDER BY channel NULLS LAST, y NULLS LAST""",
    "a pivot by quarter and scalar sub-queries": """
        SELECT (SELECT count(*) FROM orders WHERE o_comment IS NULL) AS silent,
            (SELECT max(l_quantity) FROM lineitem WHERE l_tax = 0.08) AS most,
            sum(CASE WHEN quarter(o_orderdate) = 1 THEN o_totalprice END) AS winter,
            sum(CASE WHEN quarter(o_orderdate) = 3 THEN o_totalprice END) AS summer, stddev(o_totalprice) AS spread
        FROM orders""",
    "each year beside the one before": """
        WITH yearly AS (SELECT o_custkey AS k, year(o_orderdate) AS y, sum(o_totalprice) AS total FROM orders
            GROUP BY o_custkey, year(o_orderdate))
        SELECT a.k, b.total AS before, a.total AS after FROM yearly a JOIN yearly b ON a.k = b.k AND a.y = b.y + 1
            JOIN customer ON c_custkey = a.k
        WHERE a.y = 1996 AND a.total > b.total * 2 ORDER BY a.k LIMIT 40""",
}
"""By what is particular to each."""

BY_SPARK = (
    "who alone was late",
    "subtotals",
    "a rank within a window over sums",
    "two channels side by side, either missing",
)
