// SPDX-License-Identifier: Apache-2.0

// Command dashboards measures the cost of open dashboards for mete's server. It sends decisions as fast as the server
// answers, in turns with and without dashboards, and prints the added cost per decision. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/metehq/mete/bench/report"
)

// most is the maximum increase of the server's time per decision while dashboards are open.
const most = 0.02

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
		}
		stop()
		os.Exit(2)
	}
}

type config struct {
	rounds, callers, dashboards int
	time                        time.Duration
	mete                        string
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("dashboards", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 15, "`rounds`, each with and without dashboards")
	flags.DurationVar(&c.time, "time", 4*time.Second, "how long to measure either in one round")
	flags.IntVar(&c.callers, "callers", 16, "`connections` that ask for decisions")
	flags.IntVar(&c.dashboards, "dashboards", 100, "`number` of dashboards that are open")
	flags.StringVar(&c.mete, "mete", "", "the `program` to measure; empty builds it")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case c.rounds < 1 || c.callers < 1 || c.dashboards < 1:
		return c, errors.New("-rounds, -callers and -dashboards must be at least 1")
	case c.time < 100*time.Millisecond:
		return c, fmt.Errorf("-time %v: must be at least 100ms", c.time)
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	s, err := serve(ctx, c.mete)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.measure(ctx, c.callers, c.time); err != nil { // a warm-up
		return err
	}
	var pairs []pair
	for n := range c.rounds {
		p, err := s.round(ctx, c, n%2 == 1)
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
		fmt.Fprintf(stderr, "round %d of %d: %+.1f %% of the server's time, %+.1f %% of decisions\n", n+1, c.rounds, 100*(p.cpu()-1), 100*(p.rate()-1))
	}
	return write(stdout, c, pairs)
}

type pair struct {
	without, with figures
	events        int // sent to all dashboards
}

// Ratios of the half with dashboards to the half without.
func (p pair) cpu() float64  { return p.with.cpu() / p.without.cpu() }
func (p pair) rate() float64 { return p.with.rate() / p.without.rate() }

// round measures both halves. The order alternates, so that drift of the machine affects both.
func (s *server) round(ctx context.Context, c config, withFirst bool) (p pair, err error) {
	with := func() error {
		v, err := s.openViewers(ctx, c.dashboards)
		if err != nil {
			return err
		}
		p.with, err = s.measure(ctx, c.callers, c.time)
		events, lost := v.close()
		p.events = events
		if err == nil && lost != nil {
			err = fmt.Errorf("a dashboard: %w", lost)
		}
		return err
	}
	if withFirst {
		err = with()
	}
	if err == nil {
		p.without, err = s.measure(ctx, c.callers, c.time)
	}
	if err == nil && !withFirst {
		err = with()
	}
	return p, err
}

func write(w io.Writer, c config, pairs []pair) error {
	var cpu, rate, without, with, eachWithout, eachWith []float64
	events := 0
	for _, p := range pairs {
		cpu, rate = append(cpu, p.cpu()-1), append(rate, p.rate()-1)
		without, with = append(without, p.without.rate()), append(with, p.with.rate())
		eachWithout, eachWith = append(eachWithout, p.without.cpu()), append(eachWith, p.with.cpu())
		events += p.events
	}
	percent := func(f float64) string { return fmt.Sprintf("%+.2f %%", 100*f) }
	micros := func(f float64) string { return fmt.Sprintf("%.2f µs", f*1e6) }
	plain := func(f float64) string { return fmt.Sprintf("%.0f", f) }
	row := func(number func(float64) string, name string, values []float64) []string {
		s := report.NewStat(values)
		return []string{name, number(s.Median), number(s.Min), number(s.Max)}
	}
	dashboards := fmt.Sprintf("%d dashboards", c.dashboards)
	fmt.Fprintf(w, "%d rounds of %v, %d callers; each dashboard received %.1f events per second.\n\n", c.rounds, c.time, c.callers,
		float64(events)/float64(c.rounds)/c.time.Seconds()/float64(c.dashboards))
	report.Table{
		{"", "median", "least", "most"},
		row(plain, "decisions/s, no dashboard", without),
		row(plain, "decisions/s, "+dashboards, with),
		row(micros, "server CPU for one, no dashboard", eachWithout),
		row(micros, "server CPU for one, "+dashboards, eachWith),
		row(percent, "difference of decisions/s, by round", rate),
		row(percent, "difference of server CPU, by round", cpu),
	}.Write(w)
	verdict := "yes"
	if report.NewStat(cpu).Median > most {
		verdict = "**no**"
	}
	_, err := fmt.Fprintf(w, "\nAt most %s of the server's time for a decision: %s\n", percent(most), verdict)
	return err
}
