import KithSimulatorCommands

/// The tool; its code is in KithSimulatorCommands.
@main
enum KithSim {
  static func main() async {
    await SimTool.main()
  }
}
