// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
)

// A ledger has rows in memory, newest first.
type ledger struct {
	mu    sync.Mutex
	rows  []api.Violation
	asked []httpapi.ViolationFilter
	err   error
	fails int // the answers that are given before the error
}

func (l *ledger) List(_ context.Context, f httpapi.ViolationFilter) ([]api.Violation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, f)
	if l.err != nil && len(l.asked) > l.fails {
		return nil, l.err
	}
	from := 0
	if f.After != (httpapi.ViolationPlace{}) {
		i, ok := slices.BinarySearchFunc(l.rows, f.After.ID, func(v api.Violation, id int64) int { return cmp.Compare(id, v.ID) })
		if !ok || !l.rows[i].At.Equal(f.After.At) {
			return nil, fmt.Errorf("no row is at %+v", f.After)
		}
		from = i + 1
	}
	return slices.Clone(l.rows[from:min(from+f.Limit, len(l.rows))]), nil
}

func (l *ledger) Histogram(_ context.Context, f httpapi.ViolationFilter) (api.ViolationHistogram, error) {
	_, err := l.List(context.Background(), f)
	return api.ViolationHistogram{Start: 60, Step: 60, Bins: 2, Series: []api.ViolationSeries{{Rule: "free", Denied: []int64{1, 2}, Shadow: []int64{0, 0}}}, Rules: 1, Rows: 3}, err
}

// last returns the last filter.
func (l *ledger) last() httpapi.ViolationFilter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[len(l.asked)-1]
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123_456_000, time.UTC)

// rows returns so many, a millisecond apart.
func rows(n int) []api.Violation {
	endpoint, retry := "GET /v1/users/alice", 1.5
	list := make([]api.Violation, n)
	for i := range list {
		at := noon.Add(-time.Duration(i) * time.Millisecond)
		list[i] = api.Violation{ID: int64(n - i), At: at, LastAt: at, Denials: 1, Rule: "free", Limit: "free", Reason: "token_bucket_exceeded", Cost: 1, Endpoint: &endpoint, RetryAfter: &retry}
	}
	return list
}

type violationAnswer struct {
	From, To time.Time
	Rows     []api.Violation
	Next     *string
	Masked   bool
	Detail   string
}

// find asks for violations and reads the answer.
func find(t *testing.T, h http.Handler, token, query string) (a violationAnswer, status int) {
	t.Helper()
	w := askAs(h, token, "GET", "/v1/violations?"+query, "")
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%s: %v: %s", query, err, w.Body)
	}
	return a, w.Code
}

func TestViolations_PageByPage(t *testing.T) {
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{rows: rows(450)}}})
	var got []int64
	cursor := ""
	for range 3 {
		a, status := find(t, h, "op", "limit=200&cursor="+cursor)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, a.Detail)
		}
		for _, v := range a.Rows {
			got = append(got, v.ID)
		}
		if a.Next == nil {
			break
		}
		cursor = *a.Next
	}
	if len(got) != 450 || !slices.IsSortedFunc(got, func(a, b int64) int { return cmp.Compare(b, a) }) {
		t.Errorf("%d rows in three pages, want all 450 from the last to the first", len(got))
	}
	if a, _ := find(t, h, "op", ""); len(a.Rows) != 50 || a.Next == nil || !a.From.Equal(a.To.Add(-24*time.Hour)) || time.Since(a.To) > time.Minute {
		t.Errorf("of nothing in particular: %d rows from %v to %v, want 50 of the last day, and a next page", len(a.Rows), a.From, a.To)
	}
	if a, _ := find(t, newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{}}}), "op", ""); a.Rows == nil || len(a.Rows) != 0 || a.Next != nil {
		t.Errorf("of an empty table: %+v, want no rows, and no next page", a)
	}
}

func TestViolations_ReadsFilters(t *testing.T) {
	from := &ledger{rows: rows(1)}
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: from}})
	find(t, h, "op", "from=2026-11-21T08:00:00%2B01:00&to=2026-11-21T09:00:00Z&rule=free&reason=blocked&key=free%3Aa&user=alice&address=192.0.2.77&endpoint=GET+%2Fv1%2F&mode=shadow&limit=7")
	f := from.last()
	if !f.From.Equal(time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)) || !f.To.Equal(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)) ||
		f.Rule != "free" || f.Reason != "blocked" || f.Key != "free:a" || f.User != "alice" || f.Network.String() != "192.0.2.77/32" ||
		f.Endpoint != "GET /v1/" || f.Mode != "shadow" || f.Limit != 8 || !f.SeeKeys {
		t.Errorf("the filter is %+v", f)
	}
	for name, want := range map[string]string{
		"address=::ffff:192.0.2.1":                        "192.0.2.1/32",
		"address=192.0.2.77/24":                           "192.0.2.0/24",
		"address=2001:db8::1":                             "2001:db8::1/128",
		"address=" + url.QueryEscape("fe80::1%eth0"):      "fe80::1/128",
		"address=" + url.QueryEscape("2001:db8:1:2::/64"): "2001:db8:1:2::/64",
	} {
		if find(t, h, "op", name); from.last().Network.String() != want {
			t.Errorf("%s: %v, want %s", name, from.last().Network, want)
		}
	}
}

func TestViolations_RefusesFilters(t *testing.T) {
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{rows: rows(1)}}})
	for _, tt := range []struct{ query, field, want string }{
		{"usr=alice", "usr", "unknown filter; use one of address,"},
		{"rule=a&rule=b", "rule", "more than once"},
		{"rule=" + strings.Repeat("a", 513), "rule", "longer than 512"},
		{"from=yesterday", "from", "write it as 2026-11-21T08:00:00Z"},
		{"from=0001-01-01T00:00:00Z", "from", "is not a time"},
		{"from=2026-11-21T09:00:00Z&to=2026-11-21T09:00:00Z", "to", "later than from"},
		{"address=localhost", "address", "neither an address nor a network"},
		{"address=" + url.QueryEscape("1.2.3.4'; DROP TABLE x; --"), "address", "neither an address nor a network"},
		{"mode=both", "mode", "neither enforced nor shadow"},
		{"limit=0", "limit", "between 1 and 200"},
		{"limit=201", "limit", "between 1 and 200"},
		{"cursor=1", "cursor", "not the next"},
		{"cursor=1.2.3", "cursor", "not the next"},
		{"cursor=9223372036854775807.1", "cursor", "not the next"},
		{"cursor=" + url.QueryEscape("1.1)--"), "cursor", "not the next"},
	} {
		a, status := find(t, h, "op", tt.query)
		if status != http.StatusBadRequest || !strings.HasPrefix(a.Detail, tt.field+": ") || !strings.Contains(a.Detail, tt.want) {
			t.Errorf("%s: %d %s; want 400 of %s that says %q", tt.query, status, a.Detail, tt.field, tt.want)
		}
	}
}

// The role read cannot search for values that it may not see.
func TestViolations_Masked(t *testing.T) {
	from := &ledger{rows: rows(1)}
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: from}})
	hash := "~AiF4ICxatfVsiOxjWbeiSg"
	for query, ok := range map[string]bool{
		"user=" + hash:               true,
		"key=" + hash:                true,
		"user=alice":                 false,
		"key=free%3Aa":               false,
		"key=~short":                 false,
		"key=" + hash + "x":          false,
		"address=192.0.2.0/24":       true,
		"address=10.0.0.0/8":         true,
		"address=192.0.2.7":          false,
		"address=192.0.2.0/25":       false,
		"address=2001:db8:1::/48":    true,
		"address=2001:db8:1::/49":    false,
		"endpoint=GET":               true,
		"endpoint=GET+/v1":           true,
		"endpoint=/v1/":              true,
		"endpoint=GET+/v1/%E2%80%A6": true,
		"endpoint=/v1/users":         false,
		"endpoint=GET+/v1/u":         false,
		"rule=free&mode=shadow":      true,
	} {
		for _, path := range []string{"/v1/violations?", "/v1/violations/histogram?", "/v1/violations.csv?"} {
			w := askAs(h, "r", "GET", path+query, "")
			if refused := w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "role operate"); refused == ok || w.Code != http.StatusOK && ok {
				t.Errorf("%s%s: %d %s; want it answered: %v", path, query, w.Code, w.Body, ok)
			}
			if ok && from.last().SeeKeys {
				t.Errorf("%s%s: the rows are asked for as if they may be seen", path, query)
			}
		}
	}
	if find(t, h, "r", "endpoint=GET+/v1/%E2%80%A6"); from.last().Endpoint != "GET /v1/" {
		t.Errorf("an endpoint as it is shown is looked for as %q, want GET /v1/", from.last().Endpoint)
	}
	if a, _ := find(t, h, "r", ""); !a.Masked || *a.Rows[0].Endpoint != "GET /v1/…" {
		t.Errorf("the endpoint is shown as %q, masked %t", *a.Rows[0].Endpoint, a.Masked)
	}
	if a, _ := find(t, h, "op", ""); a.Masked || *a.Rows[0].Endpoint != "GET /v1/users/alice" {
		t.Errorf("to an operator the endpoint is shown as %q, masked %t", *a.Rows[0].Endpoint, a.Masked)
	}
	if w := askAs(h, "r", "GET", "/v1/violations.csv", ""); strings.Contains(w.Body.String(), "alice") || !strings.Contains(w.Body.String(), "GET /v1/…") {
		t.Errorf("the file of a reader: %s", w.Body)
	}
	if _, status := find(t, h, "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
	}
}

func TestViolations_Errors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   httpapi.Violations
		status int
		want   string
	}{
		{"none", nil, http.StatusNotFound, "--violations postgres://"},
		{"slow", &ledger{err: fmt.Errorf("%w: 5s", httpapi.ErrViolationsSlow)}, http.StatusServiceUnavailable, "less time"},
		{"away", &ledger{err: fmt.Errorf("%w: dial tcp: secret-host", httpapi.ErrViolationsUnavailable)}, http.StatusServiceUnavailable, "is unavailable"},
		{"a filter", &ledger{err: &httpapi.FilterError{Field: "key", Detail: "cannot be looked for"}}, http.StatusBadRequest, "key: cannot be looked for"},
		{"else", &ledger{err: errors.New("what is that")}, http.StatusInternalServerError, "internal error"},
	} {
		h := newLive(t, liveConfig{Live: httpapi.Live{Violations: tt.from}})
		for _, path := range []string{"/v1/violations", "/v1/violations/histogram", "/v1/violations.csv"} {
			w := askAs(h, "op", "GET", path, "")
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || strings.Contains(w.Body.String(), "secret-host") || w.Header().Get("Content-Disposition") != "" {
				t.Errorf("%s, %s: %d %s; want %d that says %q", tt.name, path, w.Code, w.Body, tt.status, tt.want)
			}
		}
	}
}

func TestViolations_Histogram(t *testing.T) {
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{}}})
	w := askAs(h, "r", "GET", "/v1/violations/histogram", "")
	const want = `{"start":60,"step":60,"bins":2,"series":[{"rule":"free","denied":[1,2],"shadow":[0,0]}],"rules":1,"rows":3}`
	if strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("the histogram is %s, want %s", w.Body, want)
	}
}

// readCSV reads a file as a spreadsheet would.
func readCSV(t *testing.T, w *httptest.ResponseRecorder) [][]string {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	lines, err := csv.NewReader(strings.NewReader(w.Body.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestViolationsCSV(t *testing.T) {
	list := rows(2)
	hostile := []string{`=cmd|'/c calc'!A0`, `+1+1`, "-2+3", `@SUM(A1)`, "\tx", "\r=x", "\n=x", `a"b,c`, "a\r\nb", "'quoted'", "ok=1"}
	for _, key := range hostile {
		v := list[1]
		v.Key, v.RetryAfter, v.Shadow = &key, nil, true
		list = append(list, v)
	}
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{rows: list}}})
	w := askAs(h, "op", "GET", "/v1/violations.csv?from=2026-11-21T00:00:00Z&to=2026-11-22T00:00:00Z", "")
	lines := readCSV(t, w)
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="violations-20261122T000000Z.csv"` {
		t.Errorf("Content-Disposition: %s", got)
	}
	if got := w.Header().Get("Content-Type"); got != "text/csv; charset=utf-8; header=present" {
		t.Errorf("Content-Type: %s", got)
	}
	if body := w.Body.String(); strings.Count(body, "\r\n") < len(lines) || !strings.HasSuffix(body, "\r\n") {
		t.Errorf("lines do not end with CR LF: %q", body)
	}
	want := []string{"at,last_at,denials,mode,rule,limit,reason,key,user,address,endpoint,tokens,cost,retry_after,node,id",
		"2026-11-21T12:00:00.123456Z,2026-11-21T12:00:00.123456Z,1,enforced,free,free,token_bucket_exceeded,,,,GET /v1/users/alice,,1,1.5,,2"}
	for i, line := range want {
		if got := strings.Join(lines[i], ","); got != line {
			t.Errorf("line %d is %s, want %s", i+1, got, line)
		}
	}
	if len(lines) != 3+len(hostile) {
		t.Fatalf("%d lines, want %d", len(lines), 3+len(hostile))
	}
	for i, key := range hostile {
		cells := lines[3+i]
		shown := cells[7]
		if shown != "" && strings.ContainsRune("=+-@\t\r\n", rune(shown[0])) {
			t.Errorf("%q is a formula still: %q", key, shown)
		}
		if bare := strings.TrimPrefix(shown, "'"); strings.ReplaceAll(bare, "\r", "") != strings.ReplaceAll(strings.TrimPrefix(key, "'"), "\r", "") {
			t.Errorf("%q reads as %q", key, shown)
		}
		if cells[3] != "shadow" || cells[13] != "never" {
			t.Errorf("the row of %q: %q, want mode shadow and retry_after never", key, cells)
		}
	}
}

// A file has a maximum number of rows, and reports more.
func TestViolationsCSV_Bound(t *testing.T) {
	const most = 100_000
	for _, n := range []int{0, 1999, 2000, 2001, most, most + 1, most + 5000} {
		from := &ledger{rows: rows(n)}
		w := askAs(newLive(t, liveConfig{Live: httpapi.Live{Violations: from}}), "op", "GET", "/v1/violations.csv", "")
		lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\r\n"), "\r\n") // no cell of these has a line break
		last := lines[len(lines)-1]
		if n <= most && len(lines) != n+1 {
			t.Errorf("of %d rows: %d lines, want each and the first", n, len(lines))
		}
		if n > most && (len(lines) != most+2 || !strings.HasPrefix(last, "incomplete: more than 100000 rows match")) {
			t.Errorf("of %d rows: %d lines, the last %q; want %d, and that it is incomplete", n, len(lines), last, most+2)
		}
		if n <= most && strings.Contains(last, "incomplete") {
			t.Errorf("of %d rows: it says %q", n, last[0])
		}
		for _, f := range from.asked {
			if f.Limit > 2000 {
				t.Errorf("of %d rows: %d are asked for at once", n, f.Limit)
			}
		}
	}
}

// A file that cannot be completed breaks off.
func TestViolationsCSV_BreaksOff(t *testing.T) {
	from := &ledger{rows: rows(5000), err: httpapi.ErrViolationsSlow, fails: 1}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("it ends with %v, want that it is cut off", got)
		}
	}()
	askAs(newLive(t, liveConfig{Live: httpapi.Live{Violations: from}}), "op", "GET", "/v1/violations.csv", "")
}

// A slow ledger delays each query.
type slow struct {
	*ledger
	wait time.Duration
}

func (s slow) List(ctx context.Context, f httpapi.ViolationFilter) ([]api.Violation, error) {
	select {
	case <-time.After(s.wait):
		return s.ledger.List(ctx, f)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A pipes is a listener for connections within this process, which work in a bubble of
// virtual time.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p <- far
	return near, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// A file may take longer than a server gives to answers.
func TestViolationsCSV_OutlastsTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 2 * time.Second // the bubble's
		listener := make(pipes)
		server := http.Server{
			Handler:     newLive(t, liveConfig{Live: httpapi.Live{Violations: slow{&ledger{rows: rows(6500)}, timeout * 3 / 4}}}),
			ReadTimeout: timeout, WriteTimeout: timeout,
		}
		go server.Serve(listener)
		defer server.Close()
		transport := &http.Transport{DialContext: listener.dial, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://board/v1/violations.csv", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer op")
		begun := time.Now()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines, err := csv.NewReader(resp.Body).ReadAll()
		if err != nil || len(lines) != 6501 {
			t.Errorf("%d lines, and then %v; want 6501", len(lines), err)
		}
		if took := time.Since(begun); took <= 2*timeout {
			t.Errorf("it took %v, which proves nothing", took)
		}
	})
}

// A gate keeps questions until it is opened.
type gate struct {
	*ledger
	asked, open chan struct{}
}

func (g gate) List(ctx context.Context, f httpapi.ViolationFilter) ([]api.Violation, error) {
	g.asked <- struct{}{}
	<-g.open
	return g.ledger.List(ctx, f)
}

// Only so many files are written at a time.
func TestViolationsCSV_FewAtATime(t *testing.T) {
	const most = 4
	g := gate{&ledger{rows: rows(1)}, make(chan struct{}), make(chan struct{})}
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: g}})
	var files sync.WaitGroup
	for range most {
		files.Go(func() {
			if w := askAs(h, "r", "GET", "/v1/violations.csv", ""); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		})
		<-g.asked
	}
	if w := askAs(h, "r", "GET", "/v1/violations.csv", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	close(g.open)
	files.Wait()
	go func() { <-g.asked }()
	if w := askAs(h, "r", "GET", "/v1/violations.csv", ""); w.Code != http.StatusOK {
		t.Errorf("after those: %d %s", w.Code, w.Body)
	}
}

func TestViolationsCSV_Refuses(t *testing.T) {
	h := newLive(t, liveConfig{Live: httpapi.Live{Violations: &ledger{rows: rows(10)}}})
	for _, query := range []string{"limit=5", "cursor=1.1"} {
		if w := askAs(h, "op", "GET", "/v1/violations.csv?"+query, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "leave out cursor and limit") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := askAs(h, "op", "HEAD", "/v1/violations.csv", ""); w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Disposition") == "" {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := askAs(h, "op", "POST", "/v1/violations", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", w.Code)
	}
}
