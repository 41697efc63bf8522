// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/proxy"
)

// A Gateway is the state of a gateway between clients and upstreams.
type Gateway struct {
	Upstreams []proxy.UpstreamStats
	Delayed   int     // requests waiting in queues
	Refused   uint64  // requests denied because a queue was full
	Factor    float64 // current multiplier of all limits
}

var (
	upstreamUp       = prometheus.NewDesc("mete_upstream_up", "1 while requests go to the server of an upstream.", []string{"upstream", "server"}, nil)
	upstreamInFlight = prometheus.NewDesc("mete_upstream_in_flight", "Requests that the server has not yet answered in full.", []string{"upstream", "server"}, nil)
	upstreamRequests = prometheus.NewDesc("mete_upstream_requests_total", "Requests to the server, by the class of the answer's status; error is none, and may have been tried again.",
		[]string{"upstream", "server", "status"}, nil)
	upstreamChanges = prometheus.NewDesc("mete_upstream_changes_total", "How often the server was taken for down, or for up again.", []string{"upstream", "server"}, nil)
	upstreamNone    = prometheus.NewDesc("mete_upstream_unavailable_total", "Requests that were answered with 503: no server of the upstream was up.", []string{"upstream"}, nil)
)

func (w writer) gateway(g Gateway) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		w.to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, u := range g.Upstreams {
		send(upstreamNone, prometheus.CounterValue, float64(u.Unavailable), u.Name)
		for _, s := range u.Servers {
			send(upstreamUp, prometheus.GaugeValue, flag(s.Up), u.Name, s.Server)
			send(upstreamInFlight, prometheus.GaugeValue, float64(s.InFlight), u.Name, s.Server)
			send(upstreamChanges, prometheus.CounterValue, float64(s.Changes), u.Name, s.Server)
			send(upstreamRequests, prometheus.CounterValue, float64(s.Errors), u.Name, s.Server, "error")
			for class := 2; class < len(s.Answers); class++ {
				send(upstreamRequests, prometheus.CounterValue, float64(s.Answers[class]), u.Name, s.Server, strconv.Itoa(class)+"xx")
			}
		}
	}
	w.gauge("mete_gateway_delayed", "Requests that wait for their turn in the queue of a limit.", float64(g.Delayed))
	w.counter("mete_gateway_delay_refused_total", "Requests that were denied because as many waited as may.", float64(g.Refused))
	w.gauge("mete_adaptive_factor", "The part of every limit that holds while it adapts to the upstream; 1 where it does not.", g.Factor)
}
