// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/metehq/mete/internal/requestpath"
)

// A service is the upstream of the gateways. It returns 200 and a copy of the request, and echoes one line
// of a WebSocket.
type service struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string // method and target of each request, and the bytes of its body

	target, at string // of the last one: its target and host
	header     http.Header
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upgrade := strings.Join(r.Header.Values("Upgrade"), ", ")
	if upgrade == "websocket" {
		s.echo(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if upgrade != "" {
		s.note(r, "UPGRADE to "+upgrade)
		return
	}
	s.note(r, fmt.Sprintf("%s %s %d", r.Method, r.RequestURI, len(body)))
	w.Header().Set("X-Body-Bytes", fmt.Sprint(len(body)))
	fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
}

// echo switches protocols, and sends back the first line that comes.
func (s *service) echo(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	s.note(r, "UPGRADE "+r.RequestURI)
	accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(accept[:]))
	rw.Flush()
	line, err := bufio.NewReader(rw).ReadString('\n')
	if err == nil {
		io.WriteString(conn, "echo "+line) // the test checks whether it arrives
	}
}

func (s *service) note(r *http.Request, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.target, s.at, s.header = append(s.seen, what), r.RequestURI, r.Host, r.Header
}

// place is where the last request went: the path as rules have it, and the host.
func (s *service) place() (path, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, _ = requestpath.Parse(s.target)
	return path, s.at
}

// field is a field of the last request.
func (s *service) field(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.header[name], ", ")
}

// requests is how many have come so far.
func (s *service) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// last is the request that came last.
func (s *service) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) == 0 {
		return ""
	}
	return s.seen[len(s.seen)-1]
}
