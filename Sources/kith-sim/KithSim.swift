import KithSimulatorCommands

/// The tool; everything of it is in KithSimulatorCommands.
@main
enum KithSim {
  static func main() async {
    await SimTool.main()
  }
}
