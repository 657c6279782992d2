# Works out which shards this pod owns from its number, and starts the node.
#
# Shard s belongs to node floor(s * nodes / shards) and to the nodes after it, in a ring, as many as there are copies:
# the work of a node that is lost is spread over its neighbours. While nodes are added or taken away, a pod owns what
# either number of nodes gives it.
number="${HOSTNAME##*-}"

belongs() { # shard, nodes
    [ "$number" -lt "$2" ] || return 1
    copy=0
    while [ "$copy" -lt "$COPIES" ] && [ "$copy" -lt "$2" ]; do
        [ $((($1 * $2 / SHARDS + copy) % $2)) = "$number" ] && return 0
        copy=$((copy + 1))
    done
    return 1
}

owned() {
    shard=0
    list=""
    while [ "$shard" -lt "$SHARDS" ]; do
        if belongs "$shard" "$REPLICAS" || belongs "$shard" "$ALSO_REPLICAS"; then
            list="$list,$shard"
        fi
        shard=$((shard + 1))
    done
    echo "${list#,}"
}

# By hand, separated by semicolons, in the order of the pods.
by_hand() {
    echo "$OWN" | cut -d ';' -f "$((number + 1))"
}

if [ -n "$OWN" ]; then own=$(by_hand); else own=$(owned); fi
own="${own:-none}"
echo "pod $HOSTNAME owns shards $own of $SHARDS"
exec ranktree serve --node "$HOSTNAME" --own "$own" --shards "$SHARDS"
