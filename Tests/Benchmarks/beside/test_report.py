"""How figures are shown; Tests/nested runs this."""
import unittest
import xml.etree.ElementTree

from . import plot, program, report


def result(name, durability, **figures):
    common = {
        "id": name, "name": name, "durability": durability, "version": "1", "remark": "",
        "bareFsyncMilliseconds": 0.3, "setToSeenMilliseconds": 0.7, "idleSwitchesPerSecond": 1_234.5,
        "idleProcessorMillisecondsPerMinute": 5.0, "anonymousBytes": 8 << 20, "residentBytes": 1 << 30,
        "cableLimitSeconds": 30}
    return common | figures


def document(*results, has_cable=True):
    host = {"date": "2026-01-02", "kernel": "6", "processor": "P", "processors": 2}
    left_out = [{"name": "etcd", "reason": "etcd-server is not installed"}]
    return {"version": 1, "host": host, "hasCable": has_cable, "results": list(results), "leftOut": left_out}


def outages(*seconds):
    return [{"outSeconds": 4, "toSeenSeconds": value} for value in seconds]


class ReportTests(unittest.TestCase):
    slow = result("Syncthing", "fsync, scanned", setToSeenMilliseconds=10_012.0, catchUpMilliseconds=2_000.0,
                  wireBytesOfAChange=1_834, cable=outages(None, None, 3.0))
    quick = result("kith", "fsync, signed, sealed", setsPerSecond=66_795.2, cable=outages(None, 2.0, 1.0))

    def test_a_table_fits_a_terminal_and_names_what_is_left_out(self):
        text = report.table(document(self.slow, self.quick))
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 100)
        self.assertIn("Left out: etcd (etcd-server is not installed).", text)

    def test_an_outage_that_was_never_seen_counts_as_longest(self):
        cells = {name: line.split() for line in report.table(document(self.slow, self.quick)).splitlines()
                 for name in ("Syncthing,", "kith,") if line.startswith(name)}
        self.assertIn(">", cells["Syncthing,"])
        self.assertIn("2.00", cells["kith,"])

    def test_without_a_cable_the_reason_is_said(self):
        text = report.table(document(result("kith", "fsync"), has_cable=False))
        self.assertIn("no network namespaces", text)

    def test_the_fastest_is_bold_whoever_it_is(self):
        rows = report.readme(document(self.slow, self.quick)).splitlines()
        self.assertIn("10,012 | **0.70** |", rows[2])
        self.assertIn("**2,000** | - |", rows[4])

    def test_what_is_shown_alike_is_one_cell_and_equally_bold(self):
        both = [result("R", durability, setToSeenMilliseconds=value)
                for durability, value in (("no fsync", 0.171), ("fsync", 0.4))]
        other = result("N", "fsync", setToSeenMilliseconds=0.174)
        rows = report.readme(document(*both, other)).splitlines()
        self.assertEqual(rows[0], "|  | R, no fsync / fsync | N, fsync |")
        self.assertEqual(rows[2], "| set → seen, ms | **0.17** / 0.40 | **0.17** |")
        self.assertEqual(rows[6], "| private memory, MiB | **8.0** | **8.0** |")

    def test_markdown_has_a_cell_for_each_head(self):
        lines = report.markdown(document(self.slow, self.quick), "pictures").splitlines()
        self.assertEqual({line.count("|") for line in lines if line.startswith("|")}, {10})
        self.assertEqual((lines[0], lines[-1]), ("<!-- peers -->", "<!-- /peers -->"))

    def test_a_plot_is_xml_with_a_dot_for_each_system_that_has_the_figure(self):
        made = plot.plots(document(self.slow, self.quick))
        dots = {name: len(xml.etree.ElementTree.fromstring(text).findall("{*}circle"))
                for name, text in made.items()}
        self.assertEqual(dots, {"peers-set-to-seen.svg": 2, "peers-catch-up.svg": 1})

    def test_a_missed_goal_is_shown_beside_its_budget(self):
        figures = [program.Figure("version", "kith --version", 0.0112, "seconds"),
                   program.Figure("get", "kith get", 0.024, "seconds", 0.012)]
        self.assertEqual(program.table(figures).splitlines()[1:], [
            "kith --version   11.2 ms", "kith get           24 ms  ≤ 12 ms  miss"])
        self.assertFalse(program.document(figures, False)["ok"])


if __name__ == "__main__":
    unittest.main()
