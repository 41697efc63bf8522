// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/proctest"
)

// certified writes a certificate and returns its files, and what its clients need.
func certified(t *testing.T, dir string) (config.TLS, *tls.Config) {
	t.Helper()
	files := config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	return files, proctest.Certify(t, files.Cert, files.Key)
}

func getTLS(c *tls.Config, url string) (*http.Response, error) {
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Get(url)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	return resp, err
}

func TestTLS(t *testing.T) {
	t.Parallel()
	c := testConfig()
	trusting := new(tls.Config)
	c.TLS, trusting = certified(t, t.TempDir())
	trusting.Certificates = nil
	s := start(t, c)
	resp, err := getTLS(trusting, "https://"+s.server.Addr().String()+"/readyz")
	if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Fatalf("%v, %v; want 200 by HTTP/2", resp, err)
	}
	old := trusting.Clone()
	old.MaxVersion = tls.VersionTLS11
	if _, err := getTLS(old, "https://"+s.server.Addr().String()+"/readyz"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if resp, err := http.Get("http://" + s.server.Addr().String() + "/readyz"); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("plain HTTP is answered, too")
		}
	}
	if resp, err := getTLS(nil, "http://"+s.server.AdminAddr().String()+"/readyz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the admin address, which has no TLS: %v, %v", resp, err)
	}
}

// With client_ca, nobody without a certificate of it is served.
func TestTLS_ClientCertificates(t *testing.T) {
	t.Parallel()
	c := testConfig()
	var known, stranger *tls.Config
	c.AdminTLS, known = certified(t, t.TempDir())
	c.AdminTLS.ClientCA = c.AdminTLS.Cert // the certificate of the test is its own authority
	_, stranger = certified(t, t.TempDir())
	stranger.RootCAs = known.RootCAs
	nobody := known.Clone()
	nobody.Certificates = nil
	s := start(t, c)
	url := "https://" + s.server.AdminAddr().String() + "/readyz"
	if resp, err := getTLS(known, url); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("with a certificate: %v, %v; want 200", resp, err)
	}
	for name, c := range map[string]*tls.Config{"without a certificate": nobody, "with another's": stranger} {
		if resp, err := getTLS(c, url); err == nil {
			t.Errorf("%s: %s, want an error", name, resp.Status)
		}
	}
}

// A certificate that is replaced is in use soon, for connections that come after; one
// that does not fit never is.
func TestTLS_Reload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := testConfig()
	var before *tls.Config
	c.TLS, before = certified(t, dir)
	c.Timeouts.ReadHeader = patience // a connection asks nothing until all else is done
	s := start(t, c)
	url := "https://" + s.server.Addr().String() + "/readyz"
	open, err := tls.Dial("tcp", s.server.Addr().String(), before)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	if err := os.WriteFile(c.TLS.Key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.await("a complaint about the key", func() error {
		if !strings.Contains(s.log.String(), "certificate not replaced, old certificate stays active") {
			return fmt.Errorf("the log has none")
		}
		return nil
	})
	if resp, err := getTLS(before, url); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("with a broken key in place: %v, %v; want the old certificate", resp, err)
	}
	_, after := certified(t, dir)
	s.await("the new certificate", func() error {
		_, err := getTLS(after, url)
		return err
	})
	if _, err := getTLS(before, url); err == nil {
		t.Error("the old certificate is still used")
	}
	if _, err := fmt.Fprint(open, "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Error(err)
	}
	open.SetReadDeadline(time.Now().Add(patience))
	if text, err := io.ReadAll(open); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200") {
		t.Errorf("a connection from before: %q, %v; want 200", text, err)
	}
}

// await polls until check is content.
func (r *running) await(what string, check func() error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error { return check() }); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// Beyond max_connections, one more waits where all are in use, until one is not.
func TestBounds_Connections(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.MaxConnections, c.Upstream = 3, mustURL(u.URL)
	s := start(t, c)
	var busy [3]<-chan answer
	for i := range busy {
		busy[i] = ask(s.main + "/")
		<-u.arrived
	}
	fourth, err := net.Dial("tcp", s.server.Addr().String()) // the system takes it for us
	if err != nil {
		t.Fatal(err)
	}
	defer fourth.Close()
	if asks(fourth, 100*time.Millisecond) {
		t.Error("the fourth is answered")
	}
	close(u.release)
	fourth.SetReadDeadline(time.Now().Add(patience))
	if n, err := fourth.Read(make([]byte, 1)); n != 1 {
		t.Errorf("the fourth after the others: %v, want an answer", err)
	}
	for i := range busy {
		if a := <-busy[i]; a.status != http.StatusOK {
			t.Errorf("request %d: %+v, want 200", i+1, a)
		}
	}
}

// asks reports whether a question on conn is answered in time.
func asks(conn net.Conn, within time.Duration) bool {
	fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.SetReadDeadline(time.Now().Add(within))
	n, _ := conn.Read(make([]byte, 4<<10))
	return n > 0
}

// Beyond max_in_flight, one more request is answered with 503; health still answers.
func TestBounds_InFlight(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.MaxInFlight, c.Upstream = 2, mustURL(u.URL)
	s := start(t, c)
	first, second := ask(s.main+"/"), ask(s.main+"/")
	<-u.arrived
	<-u.arrived
	resp, err := http.Get(s.main + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), "too many requests in flight") {
		t.Errorf("the third: %s %s, want 503, the reason and when to try again", resp.Status, text)
	}
	if resp, err := http.Get(s.main + "/livez"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("livez: %v, %v; want 200", resp, err)
	}
	close(u.release)
	for _, a := range []answer{<-first, <-second} {
		if a.status != http.StatusOK {
			t.Errorf("the first two: %+v, want 200", a)
		}
	}
	if a := <-ask(s.main + "/"); a.status != http.StatusOK {
		t.Errorf("after them: %+v, want 200", a)
	}
}
