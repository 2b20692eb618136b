#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The checks of one kernel, run inside it as root: in a guest by `init`, or on a machine by `scripts/kernel-matrix here`.
#   guest.sh FOLDER EXPECT    FOLDER holds herschel-bpf, accel_loop, left and the simulated libraries; EXPECT is works or
#                             refuses (a kernel below the floor)
# Prints "CHECK name pass|fail what", and what the tool said where a check failed. Only sh, grep, sed and the like of
# busybox are there.
dir=$1 expect=$2
hb=$dir/herschel-bpf work=$dir/accel_loop
tmp=$(mktemp -d) && cd "$tmp" || exit 1
calls=1500

check() # NAME RESULT(0 = pass) WHAT
{
	if [ "$2" = 0 ]; then echo "CHECK $1 pass $3"; else echo "CHECK $1 fail $3"; fi
	[ "$2" = 0 ]
}

# What the tool said, marked, so that the reader finds it between the kernel's own lines.
said()
{
	for f in "$@"; do sed "s/^/SAID $f: /" "$f" | tail -n 40; done
}

wait_for() # TENTHS COMMAND...
{
	tenths=$1
	shift
	while ! "$@"; do
		tenths=$((tenths - 1))
		[ "$tenths" -gt 0 ] || return 1
		sleep 0.1
	done
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

# ---- workloads: each waits for a line on descriptor 9, works, and waits for another ----

start_calls() # further options of accel_loop
{
	rm -f go && mkfifo go
	LD_PRELOAD="libcuda.so.1 libcudart.so.13" LD_LIBRARY_PATH=$dir "$work" --lib libcudart.so.13 --wait --threads 2 \
		--launches $calls --copies 300 --syncs 300 --driver-launches 200 "$@" <go >work.out 2>&1 &
	target=$!
	exec 9>go
	wait_for 100 grep -qs ready work.out
}

# A shell that starts a program which makes a known number of system calls.
start_syscalls()
{
	rm -f go && mkfifo go
	echo 'read x; read y; dd if=/dev/zero of=/dev/null bs=1 count=3000 2>/dev/null' >child.sh
	sh child.sh <go >work.out 2>&1 &
	target=$!
	exec 9>go
}

end_workload()
{
	exec 9>&-
	kill -9 "$target" 2>/dev/null
	wait "$target" 2>/dev/null
}

# ---- the tool: always with a deadline ----

start_trace() # options
{
	rm -f w.hbw w.hbw.part
	"$hb" trace -p "$target" -o w.hbw "$@" >trace.out 2>trace.err &
	tool=$!
	wait_for 300 sh -c "grep -q '^tracing for' trace.err || ! kill -0 $tool 2>/dev/null"
}

end_trace() # TENTHS; leaves the exit status in $code
{
	wait_for "$1" gone "$tool" || { echo "SAID the tool did not end in time"; kill -9 "$tool"; }
	wait "$tool"
	code=$?
}

export_window()
{
	"$hb" export w.hbw --format ndjson --force -o w.nd 2>export.err
}

rows() # PATTERN...: rows of the window in which each of them is found
{
	cp w.nd rows.tmp
	for p in "$@"; do
		grep -e "$p" rows.tmp >rows.new
		mv rows.new rows.tmp
	done
	wc -l <rows.tmp
}

said_count() # NAME: what the workload printed
{
	sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" work.out
}

# ---- checks ----

check_doctor()
{
	"$hb" doctor >doctor.out 2>&1
	code=$?
	if [ "$expect" = refuses ]; then
		[ $code = 4 ]
	else
		[ $code = 0 ]
	fi
	check doctor $? "exit $code; no: $(sed -n 's/^  no  *\([^:]*\):.*/\1/p' doctor.out | tr '\n' ',')" || said doctor.out
}

# Every call counted by the workload is in the window, and no other; names and timings too.
check_counts() # NAME options of trace
{
	name=$1
	shift
	start_calls
	before=$("$dir/left" "$target")
	start_trace -d 40s "$@"
	during=$("$dir/left" "$target")
	echo >&9
	wait_for 300 grep -q counts work.out
	kill -INT "$tool"
	end_trace 200
	export_window
	launch=$(($(said_count cudaLaunchKernel) + $(said_count cuLaunchKernel)))
	seen="$(rows '"type":"accel"' LaunchKernel) $(rows '"type":"accel"' cudaMemcpyAsync) $(rows '"type":"accel"' cudaStreamSynch)"
	want="$launch $(said_count cudaMemcpyAsync) $(said_count cudaStreamSynchronize)"
	timed=$(rows '"type":"accel"' '"name":"cudaMemcpyAsync"' '"dur":')
	[ $code = 0 ] && [ "$seen" = "$want" ] && [ "$launch" -gt $calls ] && [ "$timed" = "$(said_count cudaMemcpyAsync)" ]
	check "$name" $? "exit $code; seen $seen of $want; timed $timed" || said trace.err trace.out work.out export.err
	check_seen "$name"
	check_left "$name"
	end_workload
}

# Nothing of ours stays in the kernel, no probe in the target, and the target goes on.
check_left() # NAME
{
	wait_for 100 clean
	kill -0 "$target" && clean
	check "$1-left" $? "before: $before; after: $("$dir/left" "$target")"
}

# The check above can fail: it sees programs and probes while there are some.
check_seen()
{
	case $during in "programs 0 "* | *"patched 0") false ;; *) true ;; esac
	check "$1-seen" $? "during: $during"
}

# The window has its length, and says what kernels tell in different ways.
check_window() # NAME options of trace
{
	name=$1
	shift
	start_calls --launches 1000000 --rate 300
	before=$("$dir/left" "$target")
	echo >&9
	start_trace -d 2s -F 999 "$@"
	end_trace 300
	export_window
	seen=$(rows '"type":"accel"' LaunchKernel)
	ms=$(($(sed -n '1s/.*"start_ns":\([0-9]*\),"end_ns":\([0-9]*\),.*/(\2 - \1) \/ 1000000/p' w.nd)))
	[ $code = 0 ] && [ "$seen" -gt 100 ] && [ $ms -ge 2000 ] && [ $ms -lt 8000 ]
	check "$name" $? "exit $code; $ms ms; $seen launches" || said trace.err trace.out work.out
	timer=$(rows '"type":"offcpu"' '"syscall":"clock_nanosleep"' '"chan":"timer"')
	woken=$(rows '"type":"offcpu"' '"context":"hardirq"')
	sampled=$(rows '"type":"sample"' '"mode":"kernel"' '"f":"[a-z_]*sys')
	[ "$timer" -ge 50 ] && [ "$woken" -ge 10 ] && [ "$sampled" -ge 1 ]
	check "$name-details" $? \
		"sleeps on a timer $timer, woken by an interrupt $woken, samples in a system call $sampled" || said trace.out
	check_left "$name"
	end_workload
}

# Killed in mid-window: the kernel takes everything back by itself. Within 10 s, but the guest's time is that of a machine that
# emulates it beside other work: the check prints the time and asks for three times as much.
check_killed() # NAME options of trace
{
	name=$1
	shift
	start_calls --launches 1000000 --rate 300
	before=$("$dir/left" "$target")
	echo >&9
	start_trace -d 40s "$@"
	during=$("$dir/left" "$target")
	kill -9 "$tool"
	from=$(hundredths)
	wait_for 300 clean
	took=$(($(hundredths) - from))
	kill -0 "$target" && clean && [ $took -lt 3000 ]
	check "$name" $? "${took}0 ms; before: $before; during: $during" || said trace.err
	end_workload
}

hundredths() # of a second, since the boot
{
	sed 's/ .*//; s/\.//' /proc/uptime
}

clean()
{
	[ "$("$dir/left" "$target")" = "$before" ]
}

check_syscalls()
{
	start_syscalls
	start_trace -d 40s --syscalls all
	echo >&9
	sleep 0.5
	echo >&9
	end_trace 450
	export_window
	seen=$(rows '"type":"syscall"' '"comm":"dd"' '"name":"read"' '"ret":1,')
	waited=$(rows '"type":"offcpu"' '"comm":"sh"' '"chan":"pipe')
	[ $code = 0 ] && [ "$seen" = 3000 ] && [ "$waited" -ge 1 ]
	check syscalls $? "exit $code; $seen of 3000 reads of a child; $waited waits on the pipe" || said trace.err trace.out
	end_workload
}

# One sentence, exit status 4, no window file, the target untouched.
check_refusal()
{
	start_calls
	before=$("$dir/left" "$target")
	"$hb" trace -p "$target" -d 1s -o w.hbw >trace.out 2>trace.err
	code=$?
	sentences=$(grep -c '^herschel-bpf: ' trace.err)
	[ $code = 4 ] && grep -q "needs Linux" trace.err && [ "$sentences" = 1 ] && [ "$(wc -l <trace.err)" = 1 ] && [ ! -e w.hbw ] && kill -0 "$target"
	check refusal $? "exit $code; $(head -n 1 trace.err)" || said trace.err trace.out
	check_left refusal
	end_workload
}

check_doctor
if [ "$expect" = refuses ]; then
	check_refusal
else
	check_counts counts
	check_counts counts-single --single-uprobes
	check_window window
	check_killed killed
	check_killed killed-single --single-uprobes
	check_syscalls
fi
cd / && rm -rf "$tmp"
echo "CHECKS done"
