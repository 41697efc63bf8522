// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
)

// A client of a removed certificate authority cannot connect again, even by resuming its TLS session.
func TestTLS_ClientAuthorityChanges(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := testConfig()
			server, known := certified(t, dir)
			other, next := certified(t, t.TempDir())
			c.AdminTLS = server
			c.AdminTLS.ClientCA = dir + "/ca.pem"
			believe := func(file string) {
				t.Helper()
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				write(t, c.AdminTLS.ClientCA, string(text))
			}
			believe(server.Cert)
			s := start(t, c)
			known.ClientSessionCache, known.MaxVersion = tls.NewLRUClientSessionCache(8), version
			next.RootCAs, next.MaxVersion = known.RootCAs, version
			resumed := func(c *tls.Config) (bool, error) {
				conn, err := tls.Dial("tcp", s.server.AdminAddr().String(), c)
				if err != nil {
					return false, err
				}
				defer conn.Close()
				fmt.Fprint(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				conn.SetReadDeadline(time.Now().Add(patience))
				text, err := io.ReadAll(conn)
				if err == nil && len(text) == 0 {
					err = io.ErrUnexpectedEOF
				}
				return conn.ConnectionState().DidResume, err
			}
			if _, err := resumed(known); err != nil {
				t.Fatal(err)
			}
			if again, err := resumed(known); !again || err != nil {
				t.Fatalf("a second connection: resumed %v, %v; want it to be, or this proves nothing", again, err)
			}
			believe(other.Cert)
			s.await("the new authority", func() error {
				_, err := resumed(next)
				return err
			})
			if again, err := resumed(known); err == nil {
				t.Errorf("one of the old authority: let in, resumed %v", again)
			}
		})
	}
}

// A file that is broken, fixed and broken again is reported twice.
func TestTLS_BrokenAgain(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.TLS, _ = certified(t, t.TempDir())
	good, err := os.ReadFile(c.TLS.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	for n := 1; n <= 2; n++ {
		write(t, c.TLS.Key, "no key")
		s.await("a complaint", func() error {
			if got := s.log.Count("certificate not replaced"); got != n {
				return fmt.Errorf("%d of them, want %d", got, n)
			}
			return nil
		})
		write(t, c.TLS.Key, string(good))
		s.await("its end", func() error {
			if got := s.log.Count("certificate readable again, unchanged"); got != n {
				return fmt.Errorf("%d of them, want %d", got, n)
			}
			return nil
		})
	}
}

// Connections that come to nothing, or to another protocol, give their places back.
func TestBounds_PlacesComeBack(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.MaxConnections = 2
	var trusting *tls.Config
	c.TLS, trusting = certified(t, t.TempDir())
	s := start(t, c)
	url := "https://" + s.server.Addr().String() + "/livez"
	stranger := trusting.Clone()
	stranger.RootCAs = nil
	for range 5 {
		if _, err := getTLS(stranger, url); err == nil {
			t.Error("a certificate of nobody is believed")
		}
		if resp, err := http.Get("http://" + s.server.Addr().String() + "/livez"); err == nil {
			resp.Body.Close() // 400: it is TLS
		}
		for _, protocol := range []string{"h2", "http/1.1", "nonsense"} {
			with := trusting.Clone()
			with.NextProtos = []string{protocol}
			if conn, err := tls.Dial("tcp", s.server.Addr().String(), with); err == nil {
				conn.Close()
			}
		}
		if resp, err := getTLS(trusting, url); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("one that is well: %v, %v; want 200", resp, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	testkit.Until(t, "no connection is counted when none is open", func() bool {
		_, text := get(t, s.admin+"/metrics")
		return strings.Contains(text, `mete_http_connections{listener="main"} 0`)
	})
}
