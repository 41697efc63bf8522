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

func (e *exchange) upgrade(res *http.Response) {
	server, ok := res.Body.(io.ReadWriteCloser)
	if got := res.Header.Get("Upgrade"); !ok || e.protocol == "" || !strings.EqualFold(got, e.protocol) {
		res.Body.Close()
		e.fail(fmt.Errorf("the server switched to protocol %q instead of %q", got, e.protocol))
		return
	}
	defer server.Close()
	if _, all := e.body.sentAt(); !all {
		e.fail(errors.New("the server switched protocols before the request was complete"))
		return
	}
	// Register the tunnel before the hijack: until then a server that shuts down waits for the request.
	t := newTunnel()
	if !e.proxy.tunnels.add(t) {
		e.fail(errDraining)
		return
	}
	defer e.proxy.tunnels.remove(t)
	e.beginResponse()
	client, buffered, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		e.fail(fmt.Errorf("switch protocols: %w", err))
		return
	}
	defer client.Close()
	done := make(chan struct{})
	defer close(done)
	go t.watch(e.out.Context(), e.proxy.config.UpgradeTimeout, done, func() {
		server.Close()
		client.Close()
	})

	protocol := res.Header["Upgrade"]
	e.copyResponseHeader(res)
	h := e.w.Header()
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, protocol
	head := http.Response{StatusCode: res.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if head.Write(buffered) != nil || buffered.Flush() != nil {
		return // the client is gone
	}
	t.recordTraffic()
	ended := make(chan error, 2)
	pour := func(to io.Writer, from io.Reader) {
		space := e.proxy.buffers.Get()
		defer e.proxy.buffers.Put(space)
		ended <- t.copyStream(to, from, space)
	}
	go pour(server, io.MultiReader(bufferedInput(buffered.Reader), client))
	go pour(client, server)
	// One direction may end before the other. If one direction fails, both end.
	if <-ended == nil {
		<-ended
	}
}

// bufferedInput returns the data that the client has already sent. Reading further through the buffers of
// net/http would end the request, and both directions, at the client's end of file.
func bufferedInput(from *bufio.Reader) io.Reader {
	said, _ := from.Peek(from.Buffered())
	return bytes.NewReader(said)
}
