// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/violations"
)

// A violationPage is the dashboard's response.
type violationPage struct {
	Rows   []api.Violation
	Next   *string
	Detail string
}

// violations asks the dashboard of a server.
func (r *running) violations(token, query string) (p violationPage, status int) {
	r.t.Helper()
	status, text := r.as(token, "GET", "/v1/violations?"+query, "")
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		r.t.Fatalf("violations %s: %d %s: %v", query, status, text, err)
	}
	return p, status
}

// audited is a server that has denied three requests of alice and one of bob.
func audited(t *testing.T, db, schema, key string, raw bool) *running {
	t.Helper()
	c := withTokens()
	c.Policy, c.Violations, c.HashKey, c.ViolationsRaw, c.ViolationsUser = policyFile(t, burst("1")), storeurl.MustParse(db), key, raw, "header:x-user"
	s := start(t, c)
	s.records()
	for user, n := range map[string]int{"alice": 4, "bob": 2} {
		for range n {
			body := fmt.Sprintf(`{"attributes":{"ip:address":"192.0.2.%d","header:x-user":%q,"method":"GET","path":"/v1/users/%s"}}`, len(user), user, user)
			if status, text := post(t, s.main+"/v1/take?status=429", strings.NewReader(body)); status != 200 && status != 429 {
				t.Fatalf("take: %d %s", status, text)
			}
		}
	}
	awaitViolations(t, reader(t, db, schema, "-"), violations.Query{}, 4)
	return s
}

func TestDashboardViolations(t *testing.T) {
	t.Parallel()
	for _, raw := range []bool{false, true} {
		for _, key := range []string{"", "the key of the hashes"} {
			t.Run(fmt.Sprintf("raw %v, key %q", raw, key), func(t *testing.T) {
				db, schema := schemaURL(t)
				checkViolations(t, audited(t, db, schema, key, raw), raw)
			})
		}
	}
}

func checkViolations(t *testing.T, s *running, raw bool) {
	t.Helper()
	hidden, status := s.violations(readerToken, "")
	all, _ := s.violations(operatorToken, "")
	if status != http.StatusOK || len(hidden.Rows) != 4 || len(all.Rows) != 4 {
		t.Fatalf("%d: %d rows for who may look, %d for who may see keys; want 4", status, len(hidden.Rows), len(all.Rows))
	}
	for i, v := range hidden.Rows {
		if !strings.HasPrefix(*v.Key, "~") || !strings.HasPrefix(*v.User, "~") || *v.Address != "192.0.2.0/24" || *v.Endpoint != "GET /v1/…" {
			t.Errorf("who may only look sees %s %s %s %s", *v.Key, *v.User, *v.Address, *v.Endpoint)
		}
		of := all.Rows[i]
		if of.ID != v.ID || (*of.Key == *v.Key) == raw || (*of.Address == "192.0.2.0/24") == raw || !strings.HasPrefix(*of.Endpoint, "GET /v1/users/") {
			t.Errorf("raw %v: who may see keys sees %s %s %s", raw, *of.Key, *of.Address, *of.Endpoint)
		}
	}
	for _, tt := range []struct {
		query string
		want  int
	}{
		{"user=alice", 3}, {"user=bob", 1}, {"user=carol", 0}, {"key=" + url.QueryEscape("client:ip=192.0.2.5"), 3}, {"rule=client", 4}, {"rule=free", 0},
		{"address=192.0.2.0/24", 4}, {"address=198.51.100.0/24", 0}, {"endpoint=/v1/users/alice", 3}, {"endpoint=POST", 0},
		{"mode=enforced", 4}, {"mode=shadow", 0}, {"reason=token_bucket_exceeded", 4}, {"from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z", 0},
		{"rule=" + url.QueryEscape(`' OR '1'='1`), 0}, {"key=" + url.QueryEscape("x'); DELETE FROM rate_limit_violation; --"), 0},
		{"user=%00", 0}, {"endpoint=%25", 0}, {"reason=%ff", 0},
	} {
		if p, status := s.violations(operatorToken, tt.query); status != http.StatusOK || len(p.Rows) != tt.want {
			t.Errorf("%s: %d, %d rows, want %d; %s", tt.query, status, len(p.Rows), tt.want, p.Detail)
		}
	}
	if p, status := s.violations(readerToken, "user=alice"); status != http.StatusForbidden {
		t.Errorf("who may only look asks for alice: %d, %d rows; want 403", status, len(p.Rows))
	}
	by := "user=" + *hidden.Rows[0].User
	if p, status := s.violations(readerToken, by); raw && status != http.StatusBadRequest || !raw && (status != http.StatusOK || len(p.Rows) == 0) {
		t.Errorf("raw %v: who may only look asks for what is shown: %d, %d rows, %s", raw, status, len(p.Rows), p.Detail)
	}
	first, _ := s.violations(operatorToken, "limit=3")
	if first.Next == nil {
		t.Fatal("there is no page after the first")
	}
	if second, _ := s.violations(operatorToken, "limit=3&cursor="+*first.Next); len(second.Rows) != 1 || second.Next != nil || second.Rows[0].ID != all.Rows[3].ID {
		t.Errorf("the second page is %+v, want the last row", second)
	}
	if _, text := s.as(readerToken, "GET", "/v1/violations/histogram", ""); !strings.Contains(text, `"rules":1,"rows":4`) {
		t.Errorf("the histogram is %s", text)
	}
	if status, text := s.as(readerToken, "GET", "/v1/violations.csv", ""); status != http.StatusOK || strings.Count(text, "\r\n") != 5 || strings.Contains(text, "alice") {
		t.Errorf("the file is %d %s", status, text)
	}
	if status, text := s.as("", "GET", "/v1/violations.csv", ""); status != http.StatusUnauthorized {
		t.Errorf("the file without a token: %d %s", status, text)
	}
}

func TestDashboardViolations_Off(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	if p, status := s.violations(readerToken, ""); status != http.StatusNotFound || !strings.Contains(p.Detail, "--violations postgres://") {
		t.Errorf("%d %s, want 404 that says how", status, p.Detail)
	}
	if _, text := s.as(readerToken, "GET", "/v1/me", ""); !strings.Contains(text, `"violations":false`) {
		t.Errorf("the page is told that there are some: %s", text)
	}
}

// However many look, they share two connections, and none of the recorder's. A database
// that goes away and comes again takes none of it along.
func TestDashboardViolations_Connections(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := withTokens()
	c.Policy, c.Violations = policyFile(t, burst("1")), storeurl.MustParse(p.URL())
	s := start(t, c)
	s.records()
	s.take("192.0.2.1")
	s.take("192.0.2.1")
	awaitViolations(t, reader(t, p.URL(), "mete", ""), violations.Query{}, 1)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			for range 5 {
				if status, text := s.as(operatorToken, "GET", "/v1/violations?user=alice", ""); status != http.StatusOK {
					t.Errorf("%d %s", status, text)
				}
			}
		})
	}
	asking.Wait()
	const connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mete'"
	if n, err := p.Psql(connections); err != nil || n != "3" && n != "4" {
		t.Errorf("%s connections, %v; want the recorder's one or two, and two of those who look", n, err)
	}
	p.Kill()
	if page, status := s.violations(operatorToken, ""); status != http.StatusServiceUnavailable || !strings.Contains(page.Detail, "is unavailable") {
		t.Errorf("without the database: %d %s", status, page.Detail)
	}
	if s.log.Count("cannot read violations") != 1 {
		t.Error("the log does not say so")
	}
	p.Restart()
	testkit.Until(t, "the rows are shown again", func() bool {
		page, status := s.violations(operatorToken, "")
		return status == http.StatusOK && len(page.Rows) == 1
	})
}
