// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/prose"
)

const slotsAbout = `
Renews or releases a slot of a concurrency limit, from any machine. 'mete take'
takes the slot and prints it. The attributes must be those of the take.

  slot=$(mete take --format json header:x-tenant=acme | jq -r .slot)
  mete slots renew "$slot" header:x-tenant=acme
  mete slots release "$slot" header:x-tenant=acme

A slot that is neither renewed nor released ends with its lease. 'mete peek
--key KEY' lists the slots that are held.
`

const slotsExits = `
Exit codes:
  0  done
%s  2  wrong usage
  3  the server or its store does not answer
  4  the server rejects the request, for example because no concurrency limit
     applies to it
`

var slotsRenewAbout = `
Starts the lease of a slot again. Call it three times per lease while the work
runs. After exit code 1, another request may hold the slot.
` + fmt.Sprintf(slotsExits, "  1  the slot has ended or was released\n")

var slotsReleaseAbout = `
Frees a slot when its work has ended. The command may be repeated after any
failure: a slot is released at most once.
` + fmt.Sprintf(slotsExits, "")

func newSlotsCommand(std Streams) *cobra.Command {
	q := &question{std: std}
	cmd := &cobra.Command{
		Use: "slots [renew | release] [flags] SLOT NAME=VALUE ...", Short: "Renew or release a slot of a concurrency limit", Long: slotsAbout,
		Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	addPersistentFormat(cmd, &q.format, "text", "json")
	cmd.PersistentFlags().AddFlagSet(q.flags(mainURL()))
	cmd.AddCommand(
		q.newSlotCommand("renew", "Start the lease of a slot again", slotsRenewAbout, q.renewSlot),
		q.newSlotCommand("release", "Free a slot", slotsReleaseAbout, q.releaseSlot),
	)
	return cmd
}

func (q *question) newSlotCommand(name, short, long string, do func(context.Context, *client.Client) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " [flags] SLOT NAME=VALUE ...", Short: short, Long: long, ValidArgsFunction: completeAttributes,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usageError("the slot is required, as 'mete take' prints it")
			}
			if _, err := bucket.ParseSlotID(args[0]); err != nil {
				return usageError("%w, as 'mete take' prints it", trimPackage(err))
			}
			q.Slot = args[0]
			if q.Attributes, err = readAttributes(args[1:]); err != nil {
				return err
			}
			c, err := q.newClient()
			if err != nil {
				return fail(exitUsage, err)
			}
			return do(cmd.Context(), c)
		},
	}
}

func (q *question) renewSlot(ctx context.Context, c *client.Client) error {
	held, err := c.RenewSlots(ctx, q.Request)
	if err != nil {
		return failClient(q.server, err)
	}
	if !held.Held {
		return exitAfterOutput(q.write(held, "the slot has ended or was released\n"), exitNo)
	}
	return q.write(held, fmt.Sprintf("held for %s\n", prose.Duration(held.Lease.Duration())))
}

func (q *question) releaseSlot(ctx context.Context, c *client.Client) error {
	if err := c.ReleaseSlots(ctx, q.Request); err != nil {
		return failClient(q.server, err)
	}
	return q.write(amendment{Done: true}, "released\n")
}
