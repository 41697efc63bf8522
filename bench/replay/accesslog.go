// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// The properties of the log. As in real logs, a few addresses send much of the traffic.
const (
	addresses     = 40_000
	addressSkew   = 1.1
	linesASecond  = 500
	logSeed       = 6
	loginsPercent = 2
)

var logStart = time.Date(2026, time.November, 20, 23, 30, 0, 0, time.UTC)

var (
	agents = [...]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
		"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"okhttp/5.1.0", "curl/8.5.0", "python-requests/2.32.3",
	}
	referers = [...]string{"-", "https://www.example.com/", "https://www.example.com/products?page=2&sort=price", "https://search.example.org/?q=limits"}
	statuses = [...]int{200, 200, 200, 200, 200, 200, 304, 301, 404, 500}
)

// writeLog writes lines of an access log in the combined format. Equal arguments give equal logs.
func writeLog(w io.Writer, lines int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	random := rand.New(rand.NewPCG(logSeed, logSeed))
	who := rand.NewZipf(random, addressSkew, 20, addresses-1)
	stamp, stamped := "", -1
	var line []byte
	for i := range lines {
		if second := i / linesASecond; second != stamped {
			stamp = logStart.Add(time.Duration(second) * time.Second).Format("02/Jan/2006:15:04:05 -0700")
			stamped = second
		}
		line = appendAddress(line[:0], who.Uint64())
		line = append(line, " - - ["...)
		line = append(line, stamp...)
		line = append(line, `] "`...)
		line = appendRequest(line, random)
		line = append(line, ` HTTP/1.1" `...)
		line = strconv.AppendInt(line, int64(statuses[random.IntN(len(statuses))]), 10)
		line = append(line, ' ')
		line = strconv.AppendInt(line, random.Int64N(60_000), 10)
		line = append(line, ` "`...)
		line = append(line, referers[random.IntN(len(referers))]...)
		line = append(line, `" "`...)
		line = append(line, agents[random.IntN(len(agents))]...)
		line = append(line, "\"\n"...)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// appendAddress appends the address of a client. One client in ten has IPv6.
func appendAddress(b []byte, client uint64) []byte {
	if client%10 == 9 {
		return fmt.Appendf(b, "2001:db8:%x:%x::%x", client>>8, client&0xff, client*7919%0xffff)
	}
	return fmt.Appendf(b, "%d.%d.%d.%d", 11+client%180, client>>8&0xff, client&0xff, client*7919%254+1)
}

func appendRequest(b []byte, random *rand.Rand) []byte {
	n := random.IntN(100)
	switch {
	case n < loginsPercent:
		return append(b, "POST /login"...)
	case n < 40:
		return fmt.Appendf(b, "GET /products/%d?page=%d&sort=price&utm_source=newsletter", random.IntN(20_000), random.IntN(30))
	case n < 60:
		return fmt.Appendf(b, "GET /static/app-%08x.js", random.IntN(64))
	case n < 75:
		return fmt.Appendf(b, "GET /api/v1/search?q=%%22running%%20shoes%%22&limit=%d", random.IntN(100))
	case n < 85:
		return fmt.Appendf(b, "POST /api/v1/carts/%016x/items", random.Uint64())
	case n < 87:
		return fmt.Appendf(b, "GET /caf%%C3%%A9/%d/../menu", random.IntN(9))
	}
	return append(b, "GET /"...)
}
