// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"compress/gzip"
	"io"
	"iter"
)

// A gunzip decompresses pieces as they arrive. compress/gzip reads from a source and waits for it. Here the source is a
// coroutine (iter.Pull), which runs only within write and close: no goroutine runs beside the caller's.
type gunzip struct {
	out     func([]byte)
	pending []byte
	err     error
	resume  func() (struct{}, bool)
	stop    func()
	wait    func(struct{}) bool
}

const gunzipBuffer = 4 << 10

// newGunzip calls out with decompressed bytes.
func newGunzip(out func([]byte)) *gunzip {
	g := &gunzip{out: out}
	g.resume, g.stop = iter.Pull(g.run)
	return g
}

// write decompresses p. It returns an error once, for broken data.
func (g *gunzip) write(p []byte) error {
	g.pending = p
	g.resume()
	g.pending = nil
	err := g.err
	g.err = nil
	return err
}

// close decompresses the rest of the last piece.
func (g *gunzip) close() { g.stop() }

// run is the coroutine. It ends with the data.
func (g *gunzip) run(yield func(struct{}) bool) {
	g.wait = yield
	source, err := gzip.NewReader(g)
	if err != nil {
		g.fail(err)
		return
	}
	buffer := make([]byte, gunzipBuffer)
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			g.out(buffer[:n])
		}
		if err != nil {
			g.fail(err)
			return
		}
	}
}

func (g *gunzip) fail(err error) {
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		g.err = err
	}
}

// fill waits until there are bytes. After close there are none.
func (g *gunzip) fill() error {
	for len(g.pending) == 0 {
		if !g.wait(struct{}{}) {
			return io.EOF
		}
	}
	return nil
}

func (g *gunzip) Read(p []byte) (int, error) {
	if err := g.fill(); err != nil {
		return 0, err
	}
	n := copy(p, g.pending)
	g.pending = g.pending[n:]
	return n, nil
}

// ReadByte makes gzip read no further than it needs.
func (g *gunzip) ReadByte() (byte, error) {
	if err := g.fill(); err != nil {
		return 0, err
	}
	c := g.pending[0]
	g.pending = g.pending[1:]
	return c, nil
}
