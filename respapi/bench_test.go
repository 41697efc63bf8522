// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
)

func benchServer(tb testing.TB) *Server {
	tb.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	lim, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := New(lim, Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// batch returns n equal commands.
func batch(command string, n int) string {
	words := strings.Fields(command)
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return strings.Repeat(text, n)
}

// feed executes a batch without a connection.
func (c *client) feed(text string) {
	in := &c.busy.in
	in.end += copy(in.space(), text)
	c.executeAll()
	c.busy.out = c.busy.out[:0]
}

func newBusyClient(s *Server) *client {
	c := newClient(s, nil)
	c.busy = newBuffers(false)
	return c
}

func TestThrottle_Allocations(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates, and empties pools
	}
	c := newBusyClient(benchServer(t))
	text := batch("CL.THROTTLE user:1234 1000000 1000000 1", 16)
	c.feed(text)
	if got := testing.AllocsPerRun(100, func() { c.feed(text) }); got > 16 {
		t.Errorf("16 commands allocate %v times, want one key each", got)
	}
}

func BenchmarkExecute(b *testing.B) {
	s := benchServer(b)
	for _, command := range []string{"PING", "CL.THROTTLE user:1234 1000000 1000000 1"} {
		b.Run(strings.Fields(command)[0], func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				c, text := newBusyClient(s), batch(command, 16)
				for pb.Next() {
					c.feed(text)
				}
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/command")
		})
	}
}

// BenchmarkServe compares decisions with ECHO, the least that a server with this parser can do.
func BenchmarkServe(b *testing.B) {
	for _, pipeline := range []int{1, 16} {
		for _, command := range []string{"ECHO user:1234567890123456", "CL.THROTTLE user:1234 1000000 1000000 1"} {
			b.Run(fmt.Sprintf("P=%d/%s", pipeline, strings.Fields(command)[0]), func(b *testing.B) {
				s := benchServer(b)
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				go s.Serve(l)
				defer s.Shutdown(b.Context())
				b.SetParallelism(25)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					nc, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						b.Error(err)
						return
					}
					defer nc.Close()
					text, lines := []byte(batch(command, pipeline)), 2*pipeline
					if command[0] == 'C' {
						lines = 6 * pipeline
					}
					reply := make([]byte, 4096)
					for pb.Next() {
						if _, err := nc.Write(text); err != nil {
							b.Error(err)
							return
						}
						for got := 0; got < lines; {
							n, err := nc.Read(reply)
							if err != nil && err != io.EOF || n == 0 {
								b.Error(err)
								return
							}
							got += strings.Count(string(reply[:n]), "\n")
						}
					}
				})
				b.ReportMetric(float64(b.N)*float64(pipeline)/b.Elapsed().Seconds(), "commands/s")
			})
		}
	}
}
