module github.com/metehq/mete/examples/grpc

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	github.com/metehq/mete/grpclimit v0.0.0
	github.com/metehq/mete/redisstore v0.0.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/metehq/mete/guard v0.0.0 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/metehq/mete => ../..
	github.com/metehq/mete/grpclimit => ../../grpclimit
	github.com/metehq/mete/guard => ../../guard
	github.com/metehq/mete/redisstore => ../../redisstore
)
