import KithCommands

/// The tool; its code is in KithCommands.
@main
enum Kith {
  static func main() async {
    KithTool.prepareDispatch()
    await KithTool.main()
  }
}
