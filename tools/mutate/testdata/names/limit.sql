-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE {schema}.limits (n int DEFAULT 0 CHECK (n >= 0));

CREATE FUNCTION {schema}.{bucket}_spend(spent bigint, OUT s bigint)
LANGUAGE plpgsql AS $$
BEGIN /* 1 + /* 2 */ 3 */
	s := CASE WHEN spent<-1 OR spent IS NULL THEN 0 ELSE greatest(spent - 20, $1) END;
	IF NOT found AND spent OPERATOR(pg_catalog.=) 1 THEN
		RAISE 'it''s 1 < 2';
	END IF;
	PERFORM count(*) FROM "1 + 1" WHERE n IS NOT NULL;
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.{bucket}_spend(bigint) FROM PUBLIC;
SELECT 1 + 1;
