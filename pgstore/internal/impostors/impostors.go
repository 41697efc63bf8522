// SPDX-License-Identifier: Apache-2.0

// Package impostors helps tests to prove that SQL statements qualify every name of PostgreSQL with its schema.
package impostors

import "testing"

// Install creates a schema evil with failing copies of most functions, operators and types of PostgreSQL. It puts
// the schema before pg_catalog in the search path of all later sessions, so that each statement with an
// unqualified name fails. The function psql runs SQL as the owner of the database postgres.
func Install(t testing.TB, psql func(sql string) (text string, err error)) {
	t.Helper()
	if text, err := psql(script); err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	for _, statement := range []string{"SELECT length('x')", "SELECT 1 + 1", "SELECT 'x'::text"} {
		if text, err := psql(statement); err == nil {
			t.Fatalf("%s: the search path makes no difference to a session: %s", statement, text)
		}
	}
}

const script = `CREATE SCHEMA evil;
DO $make$
DECLARE
	x record;
	made int := 0;
BEGIN
	FOR x IN SELECT oid, proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p' LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', x.proname,
				pg_get_function_identity_arguments(x.oid), pg_get_function_result(x.oid),
				format('BEGIN RAISE EXCEPTION %L; END', 'impostor: ' || x.proname));
			made := made + 1;
		EXCEPTION WHEN OTHERS THEN NULL; -- of internal types
		END;
	END LOOP;
	FOR x IN SELECT oid, oprname, format_type(oprleft, NULL) AS a, format_type(oprright, NULL) AS b, format_type(oprresult, NULL) AS c
		FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION evil.operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', x.oid, x.a, x.b, x.c,
				format('BEGIN RAISE EXCEPTION %L; END', 'impostor: operator ' || replace(x.oprname, '%', '%%')));
			EXECUTE format('CREATE OPERATOR evil.%s (FUNCTION = evil.operator_%s, LEFTARG = %s, RIGHTARG = %s)', x.oprname, x.oid, x.a, x.b);
			made := made + 1;
		EXCEPTION WHEN OTHERS THEN NULL;
		END;
	END LOOP;
	FOR x IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typname !~ '^(_|pg_)' LOOP
		BEGIN
			EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%I CONSTRAINT impostor CHECK (false)', x.typname, x.typname);
		EXCEPTION WHEN OTHERS THEN NULL;
		END;
	END LOOP;
	IF made < 2500 THEN RAISE EXCEPTION 'only % were made', made; END IF;
END $make$;
ALTER DATABASE postgres SET search_path = evil, pg_catalog;
`
