import KithCommands

/// The tool; everything of it is in KithCommands.
@main
enum Kith {
  static func main() async {
    await KithTool.main()
  }
}
