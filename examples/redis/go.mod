module github.com/metehq/mete/examples/redis

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	github.com/metehq/mete/redisstore v0.0.0
)

require (
	github.com/metehq/mete/guard v0.0.0 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace (
	github.com/metehq/mete => ../..
	github.com/metehq/mete/guard => ../../guard
	github.com/metehq/mete/redisstore => ../../redisstore
)
