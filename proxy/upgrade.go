// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// upgrade hands the connection of a client and that of a server to each other.
func (e *exchange) upgrade(res *http.Response) {
	server, ok := res.Body.(io.ReadWriteCloser)
	if got := res.Header.Get("Upgrade"); !ok || e.protocol == "" || !strings.EqualFold(got, e.protocol) {
		res.Body.Close()
		e.fail(fmt.Errorf("the server switches to protocol %q when %q was asked for", got, e.protocol))
		return
	}
	defer server.Close()
	e.begin()
	client, buffered, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		e.fail(fmt.Errorf("switch protocols: %w", err))
		return
	}
	defer client.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // a server that ends its requests ends this one
		select {
		case <-e.out.Context().Done():
			server.Close()
			client.Close()
		case <-stop:
		}
	}()

	protocol := res.Header["Upgrade"]
	e.takeHeader(res)
	h := e.w.Header()
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, protocol
	head := http.Response{StatusCode: res.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if head.Write(buffered) != nil || buffered.Flush() != nil {
		return // the client has gone
	}
	ended := make(chan error, 2)
	go func() { ended <- pour(server, buffered.Reader, client) }()
	go func() { ended <- pour(client, server, nil) }()
	// One direction may end before the other. If it breaks, so does the other.
	if <-ended == nil {
		<-ended
	}
}

var errHalfClose = errors.New("cannot be closed in one direction")

// pour copies until from ends, and says so to whoever reads to. What from has
// buffered of conn comes first.
func pour(to io.Writer, from io.Reader, conn net.Conn) error {
	if conn != nil {
		buffered, ok := from.(interface{ Buffered() int })
		if ok && buffered.Buffered() == 0 {
			from = conn // so that the system can copy by itself
		}
	}
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errHalfClose
}
