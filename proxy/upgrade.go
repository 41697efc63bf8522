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
	// Before the connection is taken over: until then a server that shuts down waits for it.
	t := newTunnel()
	if !e.proxy.tunnels.enter(t) {
		e.fail(errEnding)
		return
	}
	defer e.proxy.tunnels.leave(t)
	e.begin()
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
	e.takeHeader(res)
	h := e.w.Header()
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, protocol
	head := http.Response{StatusCode: res.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if head.Write(buffered) != nil || buffered.Flush() != nil {
		return // the client has gone
	}
	t.note()
	ended := make(chan error, 2)
	pour := func(to io.Writer, from io.Reader) {
		space := e.proxy.buffers.Get()
		defer e.proxy.buffers.Put(space)
		ended <- t.pour(to, from, space)
	}
	go pour(server, io.MultiReader(early(buffered.Reader), client))
	go pour(client, server)
	// One direction may end before the other. If it breaks, so does the other.
	if <-ended == nil {
		<-ended
	}
}

// early is what the client has said already. What is read through the buffers of
// net/http after that would end the request when it ends, both directions of it.
func early(from *bufio.Reader) io.Reader {
	said, _ := from.Peek(from.Buffered())
	return bytes.NewReader(said)
}
