// SPDX-License-Identifier: Apache-2.0

// Command server serves the RESP commands of mete over a store in memory, without the rest of mete serve.
package main

import (
	"flag"
	"log"
	"net"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/respapi"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:6379", "`address` to listen on")
	flag.Parse()
	log.Fatal(serve(*listen))
}

func serve(addr string) error {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		return err
	}
	server, err := respapi.New(limiter, respapi.Config{MaxClients: 20_000})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return server.Serve(l)
}
