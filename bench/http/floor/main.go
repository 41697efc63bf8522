// SPDX-License-Identifier: Apache-2.0

// Command floor is the baseline of mete over HTTP: the minimal program on net/http. It ignores requests and
// answers with constant bytes or, with -upstream, is a plain [httputil.ReverseProxy].
package main

import (
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"
)

// maxIdle is mete's number of idle connections to the upstream. With the default, 2, most requests would open
// a connection.
const maxIdle = 256

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	answer := flag.String("answer", "", "`file` with the body of the answer")
	upstream := flag.String("upstream", "", "`URL` to pass requests on to")
	flag.Parse()
	h, err := handler(*answer, *upstream)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(*listen, h))
}

func handler(answer, upstream string) (http.Handler, error) {
	if upstream != "" {
		return reverseProxy(upstream)
	}
	body, err := os.ReadFile(answer)
	if err != nil {
		return nil, err
	}
	length := strconv.Itoa(len(body))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", length)
		w.Write(body)
	}), nil
}

// reverseProxy has mete's transport settings: it keeps connections and does not decompress.
func reverseProxy(upstream string) (http.Handler, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxIdle
	transport.DisableCompression = true
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
	}, nil
}
