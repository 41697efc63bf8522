// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	if _, all := e.body.sentAt(); !all {
		e.fail(errors.New("the server switches protocols before it has the whole request"))
		return
	}
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
	go func() { ended <- pour(server, io.MultiReader(early(buffered.Reader), client)) }()
	go func() { ended <- pour(client, server) }()
	// One direction may end before the other. If it breaks, so does the other.
	if <-ended == nil {
		<-ended
	}
}

var errHalfClose = errors.New("cannot be closed in one direction")

// early is what the client has said already. What is read through the buffers of
// net/http after that would end the request when it ends, both directions of it.
func early(from *bufio.Reader) io.Reader {
	said, _ := from.Peek(from.Buffered())
	return bytes.NewReader(said)
}

// pour copies until from ends, and says so to whoever reads to.
func pour(to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errHalfClose
}
