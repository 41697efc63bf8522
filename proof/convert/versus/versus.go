// SPDX-License-Identifier: Apache-2.0

// Package versus sends the same requests to a gateway and to mete, and compares the
// decisions. mete has the policy that mete convert makes of the gateway's configuration.
package versus

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// A Case is a configuration with requests, sent one after the other. No decision depends
// on time: limits refill in a minute at the earliest.
type Case struct {
	Name   string
	Config string   // of the gateway. ADDR is where it listens, and UPSTREAM is the service
	Files  []string // names and contents of files beside it
	Send   []Request

	// Listed are texts of differences that convert must list. Unlike is set if they make
	// the decisions differ. The test fails if the decisions are alike then.
	Listed []string
	Unlike bool
}

// A Request is sent Times in a row.
type Request struct {
	Times  int    // 0 is 1
	Client string // the address, 127.0.0.1 if empty
	Method string // GET if empty
	Host   string
	Path   string
	Header []string // names and values
}

// A Gateway is a program that limits requests.
type Gateway struct {
	From   string // of mete convert
	File   string // the name of its configuration
	Denial int    // the status of denied requests
	Start  func(t *testing.T, dir, file string) *proctest.Process
}

// Compare starts the gateway and mete, sends the requests to both, and compares.
func Compare(t *testing.T, g Gateway, c Case) {
	t.Helper()
	p := Open(t, g, c)
	for i := 1; i < len(c.Files); i += 2 {
		if strings.Contains(p.Differences, "cannot be read") {
			t.Errorf("convert does not read %s", c.Files[i-1])
		}
	}
	theirs, ours := p.Decide(t, g, c)
	switch alike := theirs == ours; {
	case !alike && !c.Unlike:
		t.Errorf("the decisions differ:\n%-8s %s\n%-8s %s\nthe policy:\n%s", g.From, theirs, "mete", ours, p.Policy)
	case alike && c.Unlike:
		t.Errorf("the decisions are alike, but a difference is listed: %s\n%s", ours, p.Differences)
	}
	if !strings.Contains(theirs, "+") || !strings.Contains(theirs+ours, "-") {
		t.Errorf("the requests show nothing: %s", theirs)
	}
	for _, want := range c.Listed {
		if !strings.Contains(p.Differences, want) {
			t.Errorf("convert does not list %q:\n%s", want, p.Differences)
		}
	}
}

// A Pair is a gateway and mete, in front of the same service.
type Pair struct {
	Gateway, Mete string // host:port

	Differences string // the output of mete convert
	Policy      string
}

// Decide sends the requests of a case to both sides and returns their decisions, + or - for
// each request and a space behind each entry.
func (p *Pair) Decide(t *testing.T, g Gateway, c Case) (theirs, ours string) {
	t.Helper()
	var a, b strings.Builder
	for _, r := range c.Send {
		for range max(r.Times, 1) {
			a.WriteByte(decision(t, p.Gateway, r, g.Denial))
			b.WriteByte(decision(t, p.Mete, r, http.StatusTooManyRequests))
		}
		a.WriteByte(' ')
		b.WriteByte(' ')
	}
	return a.String(), b.String()
}

// Open converts a configuration and starts both sides.
func Open(t *testing.T, g Gateway, c Case) *Pair {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	p := &Pair{Gateway: proctest.FreeAddr(t)}
	_, port, _ := net.SplitHostPort(p.Gateway)
	there := strings.NewReplacer("ADDR", p.Gateway, "PORT", port, "UPSTREAM", strings.TrimPrefix(service.URL, "http://"))
	for i := 0; i+1 < len(c.Files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, c.Files[i])), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, c.Files[i]), there.Replace(c.Files[i+1]))
	}
	write(t, filepath.Join(dir, g.File), there.Replace(c.Config))

	output, err := mete(t, dir, "convert", "--from", g.From, "--output", "policy.yaml", g.File)
	if err != nil {
		t.Fatalf("mete convert: %v\n%s", err, output)
	}
	p.Differences = output
	if output, err := mete(t, dir, "check", "policy.yaml"); err != nil {
		t.Fatalf("mete check: %v\n%s", err, output)
	}
	policy, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.Policy = string(policy)
	p.Mete = meted.Run(t, dir, "--policy", filepath.Join(dir, "policy.yaml"), "--upstream", service.URL).Addr
	g.Start(t, dir, g.File).WaitReady(meted.Patience, proctest.TCP(p.Gateway))
	return p
}

func mete(t *testing.T, dir string, args ...string) (string, error) {
	cmd := exec.Command(meted.Program(t), args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// decision sends a request and returns '+' if it is allowed and '-' if it is denied.
func decision(t *testing.T, addr string, r Request, denial int) byte {
	t.Helper()
	switch status := Status(t, addr, r); status {
	case http.StatusOK, http.StatusMovedPermanently: // a redirect to the path with a slash
		return '+'
	case denial:
		return '-'
	default:
		t.Fatalf("%s answers %+v with status %d", addr, r, status)
		return 0
	}
}

// Status sends a request and returns the status of the answer.
func Status(t *testing.T, addr string, r Request) int {
	t.Helper()
	res, err := DoContext(t.Context(), addr, r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// DoContext sends a request on a new connection.
func DoContext(ctx context.Context, addr string, r Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, fmt.Sprintf("http://%s%s", addr, r.Path), nil)
	if err != nil {
		return nil, err
	}
	req.Host = r.Host
	for i := 0; i+1 < len(r.Header); i += 2 {
		req.Header.Add(r.Header[i], r.Header[i+1])
	}
	dialer := net.Dialer{}
	if r.Client != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(r.Client)}
	}
	return (&http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}).RoundTrip(req)
}
