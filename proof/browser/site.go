// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// The tokens of a site, by role.
const (
	ReadToken      = "read-token-0123456789abcdef"
	OperateToken   = "operate-token-0123456789abcdef"
	ConfigureToken = "configure-token-0123456789abcdef"
)

const tokens = `admin_tokens:
  - {name: looker, role: read, token: ` + ReadToken + `}
  - {name: operator, role: operate, token: ` + OperateToken + `}
  - {name: chief, role: configure, token: ` + ConfigureToken + `}
`

// A Site is a server with a dashboard.
type Site struct {
	*meted.Server
	t testing.TB
}

// Serve runs mete serve with a policy and more settings, such as "snapshot: state.json\n". Its tokens are the
// constants of this package.
func Serve(t testing.TB, policy string, settings ...string) *Site {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Site{meted.Start(t, "policy: policy.yaml\n"+tokens+strings.Join(settings, ""), dir), t}
}

// In returns the site for a subtest, which then fails if the site does not answer.
func (s *Site) In(t testing.TB) *Site { return &Site{s.Server, t} }

// Page returns the URL of a page of the dashboard, such as "overview" or "key?key=a".
func (s *Site) Page(route string) string { return s.AdminURL + "/dashboard/#/" + route }

type Attributes map[string]string

// Take sends a batch of equal takes and returns the number of allowed and denied ones. In one batch, the
// bucket does not refill between two takes.
func (s *Site) Take(times int, attributes Attributes) (allowed, denied int) {
	s.t.Helper()
	batch := slices.Repeat([]map[string]any{{"attributes": attributes}}, times)
	status, answer := s.Ask(http.MethodPost, s.URL+"/v1/take", "", map[string]any{"requests": batch})
	var decisions struct {
		Responses []struct {
			Allowed *bool // nil for an invalid request
		}
	}
	if err := json.Unmarshal([]byte(answer), &decisions); status != http.StatusOK || err != nil || len(decisions.Responses) != times {
		s.t.Fatalf("take %v %d times: %d %s, %v", attributes, times, status, answer, err)
	}
	for _, d := range decisions.Responses {
		switch {
		case d.Allowed == nil:
			s.t.Fatalf("take %v: %s", attributes, answer)
		case *d.Allowed:
			allowed++
		default:
			denied++
		}
	}
	return allowed, denied
}

// Ask sends a request and returns the status and the body of the answer. The token may be "". A body that is
// not nil is sent as JSON.
func (s *Site) Ask(method, url, token string, body any) (status int, answer string) {
	s.t.Helper()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, sent)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var client = &http.Client{Timeout: meted.Patience}
