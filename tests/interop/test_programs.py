"""A client program that hangs, breaks, or leaves a process is reported, and the next job has a new one."""

import sys
import unittest

from programs import Program

LOOP = "import json, subprocess, sys, time\nfor line in sys.stdin:\n    job = json.loads(line)\n"


class Programs(unittest.TestCase):
    def perform(self, *lines, seconds=20, jobs=({},)):
        """Returns what a program with these lines in its loop comes to, for each job, and at its end."""
        program = Program([sys.executable, "-u", "-c", LOOP + "".join(f"    {line}\n" for line in lines)], seconds)
        performed = [program.perform(job) for job in jobs]
        return [*performed, program.close()]

    def test_the_lines_of_each_job_are_returned(self):
        got = self.perform("print(line.strip())", "print('{\"done\": true}')", jobs=({"a": 1}, {"b": 2}))
        self.assertEqual(got, [([{"a": 1}], None), ([{"b": 2}], None), None])

    def test_a_job_that_fails_has_the_last_words_of_the_program(self):
        got = self.perform("print('Error: why', file=sys.stderr)", "print('{\"done\": false}')")
        self.assertEqual(got, [([], "failed: Error: why"), None])

    def test_one_that_ends_is_started_again(self):
        got = self.perform(
            "sys.exit(job['status']) if 'status' in job else print('{\"done\": true}')", jobs=({"status": 3}, {})
        )
        self.assertEqual(got, [([], "exit 3: "), ([], None), None])

    def test_one_that_hangs_is_killed(self):
        got = self.perform("time.sleep(60)", seconds=0.5)
        self.assertEqual(got, [([], "killed after 0.5 s, it hangs: "), None])

    def test_one_whose_server_stays_is_killed_with_it(self):
        got = self.perform("subprocess.Popen(['sleep', '60'])", "print('{\"done\": true}')", seconds=1)
        self.assertEqual(got, [([], "killed after 1 s, its server is still running: "), None])

    def test_a_line_that_is_not_json_is_returned_as_such(self):
        got = self.perform("print('well')", "print('{\"done\": true}')")
        self.assertEqual(got, [([{"unreadable": "well\n"}], None), None])

    def test_a_status_at_the_end_is_reported(self):
        program = Program(
            [sys.executable, "-c", LOOP + "    print('{\"done\": true}', flush=True)\nsys.exit('Error: end')"]
        )
        program.perform({})
        self.assertEqual(program.close(), "exit 1: Error: end")


if __name__ == "__main__":
    unittest.main()
