// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/metehq/mete/proof/meted"
)

// adminToken is the one in these tests.
const adminToken = "correct-horse-battery-staple"

// example is the path of a file or a directory in examples/deploy.
func example(t *testing.T, path ...string) string {
	t.Helper()
	return filepath.Join(meted.Root(t), "examples", "deploy", filepath.Join(path...))
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(example(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// copyOf is a copy of a directory in examples/deploy.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example(t, path))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// settings are the fields of mete.yaml that must agree with other files.
type settings struct {
	Listen      string `json:"listen"`
	AdminListen string `json:"admin_listen"`
	Timeouts    struct {
		Notice string `json:"notice"`
		Drain  string `json:"drain"`
	} `json:"timeouts"`
}

func settingsOf(t *testing.T, text []byte) settings {
	t.Helper()
	var s settings
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ending is how long a server may take to end by its settings: notice, drain, and a
// second for the admin address.
func (s settings) ending(t *testing.T) time.Duration {
	t.Helper()
	return duration(t, s.Timeouts.Notice) + duration(t, s.Timeouts.Drain) + time.Second
}

// timeouts is the ending of a file.
func timeouts(t *testing.T, path string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return settingsOf(t, text).ending(t)
}

// duration reads one, none where there is nothing.
func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// get asks for a page, with a token unless it is empty.
func get(t *testing.T, url, token string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
