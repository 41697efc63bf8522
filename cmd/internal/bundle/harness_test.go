// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/policy"
)

// bundleOf returns a bundle of that version, whose one rule has that burst.
func bundleOf(version, burst int) string {
	return fmt.Sprintf(`bundle_version: %d
policies:
  - id: main
    spec:
      rules:
        - name: client
          limit_keys: ["ip:address"]
          algorithm_config: { rate: 1/1d, burst: %d }
`, version, burst)
}

// A source is a server with one bundle, by TLS.
type source struct {
	*httptest.Server
	t   *testing.T
	key ed25519.PrivateKey

	mu        sync.Mutex
	text      string
	signature []byte
	tags      bool // it has ETags
	status    int  // of every answer; 0: as usual
	asked     []string
	handle    func(w http.ResponseWriter, r *http.Request) bool // true: answered
}

func newSource(t *testing.T, text string) *source {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{t: t, key: key, tags: true}
	s.put(text)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// put replaces the bundle, with a valid signature.
func (s *source) put(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.signature = text, policysign.Sign(s.key, []byte(text))
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests returns the requests since the last call: path, and tag if there was one.
func (s *source) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := strings.Join(s.asked, " ")
	s.asked = nil
	return list
}

func (s *source) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := r.URL.Path
	if r.Header.Get("If-None-Match") != "" {
		entry += "?"
	}
	s.asked = append(s.asked, entry)
	sum := sha256.Sum256([]byte(s.text))
	tag := `"` + hex.EncodeToString(sum[:4]) + `"`
	switch {
	case s.handle != nil && s.handle(w, r):
	case s.status != 0:
		w.WriteHeader(s.status)
	case r.URL.Path == "/policy.yaml.sig":
		_, _ = w.Write(s.signature)
	case r.URL.Path != "/policy.yaml":
		http.NotFound(w, r)
	case s.tags && r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
	default:
		if s.tags {
			w.Header().Set("ETag", tag)
		}
		_, _ = w.Write([]byte(s.text))
	}
}

// A server is a follower of a source, and what it applied.
type server struct {
	*Follower
	t       *testing.T
	log     *testkit.Log
	applied []int64
	told    []string
	failing error // what apply returns
	apply   func(*policy.Matcher) error
}

// config returns the settings of a follower of the source.
func (s *source) config(t *testing.T, dir string) Config {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := ParseURL(s.URL + "/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		URL: u, CAFile: ca, Keys: policysign.Keys{s.key.Public().(ed25519.PublicKey)}, StateDir: dir,
		Interval: 10 * time.Second, Options: policy.Options{HashKey: []byte("k")},
	}
}

func newServer(t *testing.T, c Config) *server {
	t.Helper()
	s := &server{t: t, log: new(testkit.Log)}
	c.Log = s.log.Logger()
	s.apply = func(m *policy.Matcher) error {
		if s.failing == nil {
			s.applied = append(s.applied, m.Version())
		}
		return s.failing
	}
	c.Tell = func(err error) {
		if err == nil {
			s.told = append(s.told, "ok")
		} else {
			s.told = append(s.told, "refused")
		}
	}
	var err error
	if s.Follower, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// load begins, and wants a version.
func (s *server) load(want int64) {
	s.t.Helper()
	m, err := s.Load(s.t.Context())
	if err != nil {
		s.t.Fatalf("Load: %v\n%s", err, s.log)
	}
	if m.Version() != want || s.Status().Version != want {
		s.t.Errorf("loaded version %d, status %+v, want %d", m.Version(), s.Status(), want)
	}
}

// poll polls, and wants a version afterwards. The error must contain the text, if that is not empty.
func (s *server) poll(want int64, text string) {
	s.t.Helper()
	err := s.Poll(s.t.Context(), s.apply, false)
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		s.t.Errorf("Poll: %v, want %q", err, text)
	}
	if got := s.Status().Version; got != want {
		s.t.Errorf("version %d is active, want %d", got, want)
	}
}
