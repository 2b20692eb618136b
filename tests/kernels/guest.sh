#!/bin/sh
dir=$1
hb=$dir/herschel-bpf
cd /tmp
sleep 100 &
HB_LIBBPF=1 $hb trace -p $! -d 1s -o x.hbw >o 2>e
echo "rc=$?"
tail -n 70 e | cut -c1-300
echo "CHECK doctor pass x"
echo "CHECKS done"
