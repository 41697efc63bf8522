// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// impatient are settings under which a client that dawdles is cut off soon.
const impatient = "timeouts: {read_header: 2s, api_request: 3s, idle: 3s}\n"

// perAddress is a policy of so many requests for each address, and then no more
// while the test lasts.
func perAddress(burst string) string {
	return `{"rules": [{"name": "each", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
		"algorithm_config": {"rate": "1/10h", "burst": ` + burst + `}}]}`
}

// start runs the server with a policy and settings beside it.
func start(t *testing.T, policy, settings string) *meted.Server {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.json"), policy)
	return meted.Start(t, "policy: policy.json\n"+settings, dir)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An answer is a response with its whole body.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with these header fields, name and value in turn. A field
// that is named twice is sent twice.
func ask(t *testing.T, method, url, body string, fields ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for field := range slices.Chunk(fields, 2) {
		if field[0] == "Host" {
			req.Host = field[1]
			continue
		}
		req.Header.Add(field[0], field[1])
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("%s %s: %v", method, url, err)
		return answer{}
	}
	return readAnswer(t, resp)
}

// client follows no redirect and waits for no longer than a test does.
var client = &http.Client{
	Timeout:       meted.Patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func readAnswer(t *testing.T, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading an answer: %v", err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
}

// takeAs asks the API for one token of an address, and returns the status.
func takeAs(t *testing.T, s *meted.Server, address string) int {
	t.Helper()
	return ask(t, http.MethodPost, s.URL+"/v1/take?status=429", takeBody("ip:address", address)).status
}

// takeBody is a question with these attributes, name and value in turn.
func takeBody(attributes ...string) string {
	named := map[string]string{}
	for attribute := range slices.Chunk(attributes, 2) {
		named[attribute[0]] = attribute[1]
	}
	body, err := json.Marshal(map[string]any{"attributes": named})
	if err != nil {
		panic(err) // of strings alone: it cannot be
	}
	return string(body)
}

// mustLive fails the test unless both addresses still answer.
func mustLive(t *testing.T, s *meted.Server, after string) {
	t.Helper()
	for _, url := range []string{s.URL, s.AdminURL} {
		if got := ask(t, http.MethodGet, url+"/livez", "").status; got != http.StatusOK {
			t.Errorf("%s/livez after %s: status %d, want 200", url, after, got)
		}
	}
}

// dial opens a connection on which nothing lasts longer than patience.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(meted.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// serve is an upstream.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// readAll reads one answer from a connection.
func readAll(t *testing.T, conn net.Conn) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("reading an answer: %v", err)
		return answer{}
	}
	return readAnswer(t, resp)
}
