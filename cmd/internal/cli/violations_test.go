// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
)

// audited returns the URL of a database with denials. Key values are hashed with key, or with the secret
// in the database if key is empty.
func audited(t *testing.T, key string, raw bool) string {
	t.Helper()
	u, err := url.Parse(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	schema := proctest.PostgresSchema(t)
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pgstore.Migrate(t.Context(), pool, schema); err != nil {
		t.Fatal(err)
	}
	secret := []byte(key)
	if key == "" {
		if secret, err = violations.DeriveKey(t.Context(), pool, schema); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	for i, d := range []*mete.Denial{
		denied("free", "free:ip=192.0.2.7", mete.Attrs{"ip:address": "192.0.2.7", "jwt:sub": "alice", "method": "GET", "path": "/v1/a"}),
		denied("free", "free:ip=192.0.2.7", mete.Attrs{"ip:address": "192.0.2.7", "jwt:sub": "alice", "method": "GET", "path": "/\x1b[2J"}),
		denied("pro", "pro:ip=198.51.100.1", mete.Attrs{"ip:address": "198.51.100.1"}),
	} {
		r, err := violations.New(pool, violations.Config{
			Schema: schema, Key: secret, Raw: raw, Node: "n", Now: func() bucket.Instant { return bucket.At(now.Add(time.Duration(i) * time.Hour)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Record(t.Context(), d)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	query := u.Query()
	query.Set("schema", schema)
	u.RawQuery = query.Encode()
	return u.String()
}

func denied(rule, key string, attrs mete.Attrs) *mete.Denial {
	status := mete.Status{
		Rule: &policy.Rule{Name: rule}, Limit: &policy.Limit{Name: rule, Reason: "token_bucket_exceeded"}, Key: key,
		Snapshot: bucket.Snapshot{Cost: bucket.Token, RetryAfter: 1500 * time.Millisecond},
	}
	return &mete.Denial{
		Decision:   mete.Decision{Rule: rule, Reason: "token_bucket_exceeded", RetryAfter: status.RetryAfter}.WithLimits(status),
		Attributes: attrs,
	}
}

func TestViolations_List(t *testing.T) {
	db := audited(t, "", true)
	stdout, stderr, code := run(t, "violations", "--db", db, "--since", "2026-11-21", "--until", "2026-11-22")
	want := `at                       denials  rule  reason                 key                  user   address       endpoint     retry after
2026-11-21 12:30:00.000        1  pro   token_bucket_exceeded  pro:ip=198.51.100.1  -      198.51.100.1  -                   1.5s
2026-11-21 11:30:00.000        1  free  token_bucket_exceeded  free:ip=192.0.2.7    alice  192.0.2.7     GET /%1B[2J         1.5s
2026-11-21 10:30:00.000        1  free  token_bucket_exceeded  free:ip=192.0.2.7    alice  192.0.2.7     GET /v1/a           1.5s
`
	if code != 0 || stderr != "" || stdout != want {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	stdout, _, code = run(t, "violations", "list", "--db", db, "--since", "2026-11-21", "--rule", "free", "--count", "1", "--format", "json")
	var line map[string]any
	if err := json.Unmarshal([]byte(stdout), &line); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s", code, err, stdout)
	}
	for name, want := range map[string]any{
		"at": "2026-11-21T11:30:00Z", "last_at": "2026-11-21T11:30:00Z", "denials": 1.0, "rule": "free", "limit": "free", "shadow": false,
		"reason": "token_bucket_exceeded", "key": "free:ip=192.0.2.7", "user": "alice", "address": "192.0.2.7", "endpoint": "GET /%1B[2J",
		"tokens": 0.0, "cost": 1.0, "retry_after": 1.5, "node": "n",
	} {
		if line[name] != want {
			t.Errorf("%s: %v, want %v", name, line[name], want)
		}
	}
	if stdout, _, code := run(t, "violations", "--db", db, "--since", "2026-12-24"); stdout != "no violations\n" || code != 0 {
		t.Errorf("where there are none: code %d, %q", code, stdout)
	}
}

// A hashed key is found with the secret from the environment or the database.
func TestViolations_FindsWhatIsHashed(t *testing.T) {
	for _, key := range []string{"", "the hash key of the test"} {
		db := audited(t, key, false)
		t.Setenv("METE_HASH_KEY", key)
		for _, tt := range []struct {
			flag, value string
			want        int
		}{
			{"--key", "free:ip=192.0.2.7", 2},
			{"--user", "alice", 2},
			{"--user", "bob", 0},
			{"--ip", "198.51.100.200", 1},
			{"--ip", "198.51.0.0/16", 1},
		} {
			stdout, stderr, code := run(t, "violations", "--db", db, "--since", "2026-11-21", "--format", "json", tt.flag, tt.value)
			if got := strings.Count(stdout, "\n"); code != 0 || got != tt.want {
				t.Errorf("%s %s: code %d, %d rows, %s; want %d", tt.flag, tt.value, code, got, stderr, tt.want)
			}
			for _, secret := range []string{"alice", "192.0.2.7"} {
				if strings.Contains(stdout, secret) {
					t.Errorf("%s %s shows %q:\n%s", tt.flag, tt.value, secret, stdout)
				}
			}
		}
	}
}

func TestViolations_Summary(t *testing.T) {
	db := audited(t, "", true)
	stdout, stderr, code := run(t, "violations", "summary", "--db", db, "--since", "2026-11-21", "--until", "2026-11-22")
	want := `3 denials, in 3 rows

denials  rule  last
      2  free  2026-11-21 11:30:00
      1  pro   2026-11-21 12:30:00

denials  key                  last
      2  free:ip=192.0.2.7    2026-11-21 11:30:00
      1  pro:ip=198.51.100.1  2026-11-21 12:30:00

denials  user   last
      2  alice  2026-11-21 11:30:00

denials  address       last
      2  192.0.2.7     2026-11-21 11:30:00
      1  198.51.100.1  2026-11-21 12:30:00

denials  endpoint     last
      1  GET /%1B[2J  2026-11-21 11:30:00
      1  GET /v1/a    2026-11-21 10:30:00

denials  hour (UTC)        last
      1  2026-11-21 10:00  2026-11-21 10:30:00
      1  2026-11-21 11:00  2026-11-21 11:30:00
      1  2026-11-21 12:00  2026-11-21 12:30:00
`
	if code != 0 || stderr != "" || stdout != want {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	stdout, _, code = run(t, "violations", "summary", "--db", db, "--since", "2026-11-21", "--user", "alice", "--format", "json")
	var doc struct {
		Denials int64
		Rules   []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 || doc.Denials != 2 || len(doc.Rules) != 1 || doc.Rules[0].Name != "free" {
		t.Errorf("of alice: code %d, %v: %s", code, err, stdout)
	}
}

func TestViolations_Fails(t *testing.T) {
	db := proctest.PostgresURL(t)
	nowhere := "postgres://" + proctest.FreeAddr(t) + "/d"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "no --db given"},
		{[]string{"--db", "mysql://h"}, 2, "--db: must begin with postgres://"},
		{[]string{"--db", db, "all"}, 2, `unknown command "all": it must be list or summary`},
		{[]string{"--db", db, "list", "summary"}, 2, `unexpected argument "summary"`},
		{[]string{"--db", db, "--since", "yesterday"}, 2, `--since: "yesterday" is neither`},
		{[]string{"--db", db, "--until", "1"}, 2, `--until: "1" is neither`},
		{[]string{"--db", db, "--ip", "example.org"}, 2, "--ip:"},
		{[]string{"--db", db, "--count", "-1"}, 2, "--count:"},
		{[]string{"--db", db, "--format", "html"}, 2, `invalid value "html" for --format`},
		{[]string{"--db", db + "&schema=nobody_made_this"}, 2, "schema nobody_made_this has no table of violations"},
		{[]string{"summary", "--db", db + "&schema=nobody_made_this"}, 2, "schema nobody_made_this has no table of violations"},
		{[]string{"--db", db + "&schema=nobody_made_this", "--user", "u"}, 2, "schema nobody_made_this has no table of violations"},
		{[]string{"--db", nowhere}, 3, "refused"},
	} {
		stdout, stderr, code := run(t, append([]string{"violations"}, tt.args...)...)
		if code != tt.code || !regexp.MustCompile(`^mete violations( list| summary)?: `).MatchString(stderr) || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %d and %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// A user with access to only the violations can search for displayed values.
func TestViolations_RightsOfAReader(t *testing.T) {
	db := audited(t, "", false)
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("schema")
	admin, err := pgxpool.New(t.Context(), proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, sql := range []string{
		"CREATE USER reader_of_" + schema, "GRANT USAGE ON SCHEMA " + schema + " TO reader_of_" + schema,
		"GRANT SELECT ON " + schema + ".rate_limit_violation TO reader_of_" + schema,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var shown string
	if err := admin.QueryRow(t.Context(), "SELECT max(user_id) FROM "+schema+".rate_limit_violation").Scan(&shown); err != nil {
		t.Fatal(err)
	}
	u.User = url.User("reader_of_" + schema)
	stdout, stderr, code := run(t, "violations", "--db", u.String(), "--since", "2026-11-21", "--user", shown)
	if code != 0 || strings.Count(stdout, shown) != 2 {
		t.Errorf("a user as shown: exit code %d, %s%s", code, stdout, stderr)
	}
	_, stderr, code = run(t, "violations", "--db", u.String(), "--user", "alice")
	if code != 2 || !strings.Contains(stderr, "METE_HASH_KEY") {
		t.Errorf("a user by name: exit code %d, %s", code, stderr)
	}
	_, stderr, code = run(t, "violations", "--db", u.String(), "--since", "1h", "--until", "2h")
	if code != 2 || !strings.Contains(stderr, `--until: "2h" is not after --since "1h"`) {
		t.Errorf("a time that is over before it begins: exit code %d, %s", code, stderr)
	}
}
