// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/respapi"
)

func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := respapi.New(limiter, respapi.Config{})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Shutdown(context.Background())

	client, err := net.Dial("tcp", listener.Addr().String()) // programs use a Redis client
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(client, "CL.THROTTLE user123 15 30 60\r\nQUIT\r\n")
	for lines := bufio.NewScanner(client); lines.Scan(); {
		fmt.Println(lines.Text())
	}
	// Output:
	// *5
	// :0
	// :16
	// :15
	// :-1
	// :2
	// +OK
}
